import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasProgram } from './skipped.ts'

export const openssl = hasProgram('openssl', ['version'], 'the tests with TLS', 'apt-get install openssl')

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

export interface Certificate {
  /** The subject alternative names; default: the local names. */
  readonly names?: string
  /** The validity in days; negative for a certificate that has expired. Default: 2. */
  readonly days?: number
}

/** A certificate authority. Its folder contains `ca.pem`, `<name>.pem`, `<name>.key`. */
export class Authority {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
    this.selfSigned('ca')
  }

  file(name: string): string {
    return join(this.#folder, name)
  }

  pem(name: string): string {
    return readFileSync(this.file(name), 'utf8')
  }

  issue(name: string, { names = 'IP:127.0.0.1,DNS:localhost', days = 2 }: Certificate = {}): void {
    const ca = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', String(days)]
    writeFileSync(this.file(`${name}.ext`), `subjectAltName=${names}\n`)
    this.#run('req', ...KEY, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`)
    this.#run('x509', '-req', '-in', `${name}.csr`, ...ca, '-extfile', `${name}.ext`, '-out', `${name}.pem`)
  }

  selfSigned(name: string): void {
    const files = ['-keyout', `${name}.key`, '-out', `${name}.pem`]
    this.#run('req', '-x509', ...KEY, ...files, '-subj', `/CN=test ${name}`, '-days', '2')
  }

  #run(...args: string[]): void {
    execFileSync('openssl', args, { cwd: this.#folder, stdio: 'pipe' })
  }
}
