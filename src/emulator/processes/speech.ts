/** Says aloud what the hub is to say, by a command of the machine. */
import { execFile } from 'node:child_process'

const LONGEST_MS = 60_000
/** What waits to be said; the newest is not said where that is too much. */
const MOST_WAITING = 10

/**
 * @param command - Program and arguments, divided by spaces; the text is added as one more. No shell reads it.
 * @param tell - Called with the error if the command fails.
 */
export function speaker(command: string, shown: (text: string) => void, tell: (problem: string) => void) {
  const [program = '', ...args] = command.split(' ').filter(Boolean)
  const waiting: string[] = []
  let speaks = false

  const next = () => {
    const text = waiting.shift()
    speaks = text !== undefined
    if (text === undefined) return
    execFile(program, [...args, text], { timeout: LONGEST_MS }, (error) => {
      if (error !== null) tell(`${program} does not speak: ${error.message.split('\n')[0]}`)
      next()
    })
  }
  return (text: string) => {
    shown(text)
    if (waiting.length >= MOST_WAITING) return
    // Neither the end of an argument nor an option of the program.
    const safe = text.replaceAll('\0', ' ')
    waiting.push(safe.startsWith('-') ? ` ${safe}` : safe)
    if (!speaks) next()
  }
}
