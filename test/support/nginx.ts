import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './ports.ts'
import { Process } from './process.ts'
import { findServer } from './skipped.ts'

export const nginxPath = findServer('nginx', 'nginx', 'apt-get install nginx-light')

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
