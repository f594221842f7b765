import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { readPassword } from '../../src/cli/hash-password.ts'

describe('the password to hash', () => {
  it.each(['correct horse\n', 'correct horse', 'correct horse\r\nmore\n'])('is the first line of %j', async (input) => {
    expect(await readPassword(Readable.from([input]))).toBe('correct horse')
  })

  const hash = `scrypt$32768$8$3$${'s'.repeat(22)}$${'k'.repeat(43)}`

  it.each(['', '\n', 'seven77\n', hash])(
    'is refused if the option would refuse it, or if it is a hash: %j',
    async (input) => {
      await expect(readPassword(Readable.from([input]))).rejects.toThrow(
        'at least 8 characters in one line, not a hash',
      )
    },
  )

  it('is refused if it is not UTF-8, because no browser could send it', async () => {
    const input = Readable.from([Buffer.from('caf\xe9 au lait\n', 'latin1')])
    await expect(readPassword(input)).rejects.toThrow('not valid UTF-8')
  })
})
