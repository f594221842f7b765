/** What stands for a payload where only equality counts, as many large ones are too much to keep. */
import { createHash } from 'node:crypto'

/** The same for equal payloads, and for no others that anybody could find. */
export const markOf = (payload: string): string => createHash('sha256').update(payload).digest('base64')
