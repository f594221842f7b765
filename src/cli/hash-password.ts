import { createInterface } from 'node:readline'
import * as v from 'valibot'
import { UsageError } from '../base/errors.ts'
import { hashPassword, isHash } from '../base/secrets.ts'
import { pagePassword } from '../config/addresses.ts'
import { type Body, exitCodes } from './command.ts'

export const printHash: Body<object> = async ({ stdin, print, warn }) => {
  if (stdin.isTTY) warn('type the password, then Enter (the password is visible):')
  print(await hashPassword(await readPassword(stdin)))
  return exitCodes.ok.code
}

/** Checks the password against the rules of the option, so that the hash is accepted later. @throws UsageError */
export async function readPassword(input: NodeJS.ReadableStream): Promise<string> {
  let first = ''
  for await (const line of createInterface({ input })) {
    first = line
    break
  }
  // The replacement for invalid bytes would become part of the password.
  if (first.includes('\uFFFD')) throw new UsageError('standard input: the password is not valid UTF-8 text')
  // Reject a hash: if it were hashed again, only the entered hash itself would be accepted as the password.
  if (v.is(pagePassword, first) && !isHash(first)) return first
  throw new UsageError('standard input: expected at least 8 characters in one line, not a hash')
}
