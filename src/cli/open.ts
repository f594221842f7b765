/** `hub2mqtt open`: the address of the page that logs a browser in. */
import { fromHere, inUrl, isLoopback } from '../base/hosts.ts'
import { type LoadOptions, loadHttpConfig } from '../config/load.ts'
import { addressWith, readToken, tokenFileOf } from '../http/start-token.ts'

/** There is no such address; the message says why. */
export class OpenError extends Error {
  override readonly name = 'OpenError'
}

/** @throws OpenError */
export function pageAddress(request: LoadOptions): string {
  const http = loadHttpConfig(request)
  if (!isLoopback(http.host)) throw new OpenError(`http.host is ${http.host}: the page needs http.password there`)
  if (http.port === 0) throw new OpenError('http.port is 0: the address is in the first lines that hub2mqtt prints')
  const file = tokenFileOf(http, http.path)
  if (file === null) {
    throw new OpenError(
      'there is no file to keep a start-up token beside: name one by http.token_file, or the configuration file by --config',
    )
  }
  const token = readToken(file)
  if (token === undefined) {
    throw new OpenError(
      `there is no start-up token in ${file}: start hub2mqtt; if it runs, it has an http.password, or cannot write there and prints the address when it starts`,
    )
  }
  return addressWith(fromHere(`http://${inUrl(http.host)}:${http.port}`), token)
}
