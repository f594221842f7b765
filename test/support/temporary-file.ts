import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Writes a file into a new folder, which is removed with `open`. Resolves with the path of the file. */
export async function temporaryFile(open: AsyncDisposableStack, name: string, text: string): Promise<string> {
  const { path } = open.use(await mkdtempDisposable(join(tmpdir(), 'hub2mqtt-')))
  const file = join(path, name)
  await writeFile(file, text, { mode: 0o600 })
  return file
}
