/** What stands for a payload where only equality counts, as many large ones are too much to keep. */
import { hash } from 'node:crypto'

/** The same for equal payloads, and for no others that anybody could find. */
export const digest = (payload: string): string => hash('sha256', payload, 'base64')
