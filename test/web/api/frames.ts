import * as v from 'valibot'
import { WebSocket } from 'ws'
import { LIVE_FRAME, type LiveFrame } from '../../../src/web/server/api/protocol.ts'
import type { RunningBridge } from '../../support/bridge.ts'
import { until } from '../../support/until.ts'

/** Resolves with the address of the listener of a bridge. */
export const addressOf = ({ lines }: RunningBridge) =>
  until('the listener', () => lines.map((line) => JSON.parse(line).url).find((found) => found !== undefined))

/** Resolves with the first frames of the live channel of a daemon; by default, with the first one. */
export async function framesOf(url: string, enough = (frames: readonly LiveFrame[]) => frames.length > 0) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/live`)
  const frames: LiveFrame[] = []
  socket.on('message', (data) => frames.push(v.parse(LIVE_FRAME, JSON.parse(String(data)))))
  try {
    await until('frames', () => enough(frames))
  } finally {
    socket.terminate()
  }
  return frames
}

export async function snapshotOf(url: string) {
  const [first] = await framesOf(url)
  if (first?.type !== 'snapshot') throw new Error('no snapshot')
  return first
}
