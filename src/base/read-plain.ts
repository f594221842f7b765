/** Reads regular files that users name. A pipe would block the event loop, and a device may never end. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

/** Maximum size of a file, which is larger than any configuration, key or certificate. */
export const MAX_BYTES = 1024 * 1024

// Without these flags, opening a pipe waits for a writer, and a terminal may become the controlling terminal of this
// process. Windows does not have these flags.
const { O_RDONLY, O_NONBLOCK = 0, O_NOCTTY = 0 } = constants

/** @throws an error with a file system `code`, `EFBIG` above 1 MiB, or `NOT_PLAIN` if it is not a regular file */
export function readPlain(path: string): Buffer {
  const file = openSync(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
  try {
    // Check the open file, not the path, which may name a different file after `openSync`.
    const stat = fstatSync(file)
    if (stat.isDirectory()) throw failure('EISDIR')
    if (!stat.isFile()) throw failure('NOT_PLAIN')
    if (stat.size > MAX_BYTES) throw failure('EFBIG')
    const content = readFileSync(file)
    // Files in `/proc` report a size of 0.
    if (content.length > MAX_BYTES) throw failure('EFBIG')
    return content
  } finally {
    closeSync(file)
  }
}

/** @throws the errors of `readPlain`, and a TypeError if the text is not valid UTF-8, unless `lenient` */
export const readPlainText = (path: string, lenient = false): string =>
  new TextDecoder('utf-8', { fatal: !lenient, ignoreBOM: true }).decode(readPlain(path))

const failure = (code: string) => Object.assign(new Error(code), { code })
