import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { MAX_BYTES, readPlain } from '../../src/base/read-plain.ts'
import { temporaryFolder } from '../support/at-end.ts'
import { available } from '../support/skipped.ts'

const hasSpecialFiles = available(
  process.platform !== 'win32',
  'reading special files',
  'Windows has no pipes and devices among its files',
)

/** Source files that read files with Node's own functions, and why that is safe. */
const DIRECT: Readonly<Record<string, string>> = {
  'src/bin.js': "reads the program's own files, and the manifest of the installed Node",
  'src/base/read-plain.ts': 'is this function, which checks the open file before reading it',
  'src/config/start-token.ts': 'opens the file in the same way, and checks the owner and the mode of the open file',
  'src/web/server/page.ts': "reads the page's own files, from a list made by the build",
  'src/web/server/api/routes.ts': "reads the program's own OpenAPI document",
  'src/emulator/data/app-folder.ts': 'opens only files that `lstat` reports as plain, and limits their total size',
  'src/emulator/processes/watch.ts': 'reads /proc of a process that it has started',
  'src/web/ui/build.ts': 'runs only during the build',
  'src/tooling/docs/main.ts': 'runs only during the build',
  'src/tooling/docs/release-notes.ts': 'runs only during the build',
  'src/tooling/docs/validate.ts': 'runs only during the build',
}

const READS = /\b(readFile|createReadStream|openAsBlob)(Sync)?\(|\bopen\([^)]*, 'r'\)|\bimport\((?!')/

test('one function reads every file that a user names; all other reads of files are listed, with a reason', () => {
  const reading = globSync(['src/**/*.{ts,tsx,js}'], { exclude: ['src/web/ui/dist/**'] }).filter((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .some((line) => READS.test(line) && !/^\s*(\/\/|\*|\/\*)/.test(line)),
  )
  // These files read with the parameter `readFile`. Its default is the function that reads only plain files.
  const given = ['src/config/file.ts', 'src/config/read.ts', 'src/config/load.ts']
  // `data-folder.ts` opens folders to flush their entries to disk. `runner.js` loads the app in the app's own process.
  const other = ['src/emulator/data/data-folder.ts', 'src/emulator/sdk/runner.js']
  expect(reading.filter((file) => ![...given, ...other].includes(file)).sort()).toEqual(Object.keys(DIRECT).sort())
})

describe.runIf(hasSpecialFiles)('a file that a user names', () => {
  function folder() {
    const made = temporaryFolder()
    return (name: string) => join(made, name)
  }

  test.each([
    ['of 1 MiB', MAX_BYTES],
    ['that is empty', 0],
    ['of several pieces', 64 * 1024 + 1],
  ])('%s is read as a whole, also through a symbolic link', (_, size) => {
    const at = folder()
    const bytes = Buffer.alloc(size, 'x')
    writeFileSync(at('file'), bytes)
    symlinkSync(at('file'), at('link'))
    expect(readPlain(at('link')).equals(bytes)).toBe(true)
  })

  test('is read even if the system reports no size', () => {
    expect(readPlain('/proc/self/stat').length).toBeGreaterThan(0)
  })

  test.each([
    ['a pipe without a writer', 'NOT_PLAIN', (path: string) => void execFileSync('mkfifo', [path])],
    ['a link to /dev/zero', 'NOT_PLAIN', (path: string) => symlinkSync('/dev/zero', path)],
    ['a link to another device', 'NOT_PLAIN', (path: string) => symlinkSync('/dev/null', path)],
    ['a link to a folder', 'EISDIR', (path: string) => symlinkSync('/', path)],
    ['a link to itself', 'ELOOP', (path: string) => symlinkSync(path, path)],
    ['a link to nothing', 'ENOENT', (path: string) => symlinkSync('/no/such/file', path)],
    [
      'a byte more than 1 MiB',
      'EFBIG',
      (path: string) => {
        writeFileSync(path, '')
        truncateSync(path, MAX_BYTES + 1)
      },
    ],
    [
      'a sparse file of a terabyte',
      'EFBIG',
      (path: string) => {
        writeFileSync(path, '')
        truncateSync(path, 2 ** 40)
      },
    ],
  ])('is refused immediately if it is %s', (_, code, make) => {
    const path = folder()('file')
    make(path)
    expect(() => readPlain(path)).toThrow(expect.objectContaining({ code }))
  })

  test('is refused immediately if it is a socket', async () => {
    const path = folder()('socket')
    const server = createServer().listen(path)
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    expect(() => readPlain(path)).toThrow(expect.objectContaining({ code: 'ENXIO' }))
  })
})
