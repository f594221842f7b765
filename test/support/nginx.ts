import { existsSync } from 'node:fs'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { freePort } from './ports.ts'
import { Process } from './process.ts'
import { available } from './skipped.ts'

/** The path of nginx; `undefined` if it is not installed, which is an error with REQUIRE_NGINX=1. */
export const nginxPath = findNginx()

function findNginx(): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/opt/homebrew/bin']
  const found = folders.map((folder) => join(folder, 'nginx')).find((path) => existsSync(path))
  if (found === undefined && process.env['REQUIRE_NGINX'] === '1')
    throw new Error('REQUIRE_NGINX=1, but nginx is not installed')
  available(found !== undefined, 'the tests with nginx', 'it is not installed (apt-get install nginx-light)')
  return found
}

export interface Nginx extends AsyncDisposable {
  readonly port: number
}

/** @param lines the content of the `server` block */
export async function startNginx(lines: string): Promise<Nginx> {
  if (nginxPath === undefined) throw new Error('nginx is not installed')
  await using open = new AsyncDisposableStack()
  const { path: folder } = open.use(await mkdtempDisposable(join(tmpdir(), 'nginx-')))
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder};`)
  const server = `server { listen 127.0.0.1:${port}; ${lines} }`
  const text = `daemon off; master_process off; pid ${folder}/pid; error_log stderr;
    events {} http { access_log off; ${temporary.join(' ')} ${server} }`
  await writeFile(join(folder, 'nginx.conf'), text)
  const nginx = open.use(new Process(nginxPath, ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')]))
  await nginx.untilPort(port)
  const all = open.move()
  return { port, [Symbol.asyncDispose]: () => all.disposeAsync() }
}
