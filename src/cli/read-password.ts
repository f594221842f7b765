/** The password that `hub2mqtt hash-password` hashes. */
import { createInterface } from 'node:readline'
import * as v from 'valibot'
import { pagePassword } from '../config/page-access.ts'
import { UsageError } from './flags.ts'

/** The first line, by the rules of the option: what is printed for it is taken. @throws {UsageError} */
export async function readPassword(input: NodeJS.ReadableStream): Promise<string> {
  let first = ''
  for await (const line of createInterface({ input })) {
    first = line
    break
  }
  const read = v.safeParse(pagePassword, first)
  if (read.success) return read.output
  throw new UsageError(`standard input: ${read.issues[0].message}`)
}
