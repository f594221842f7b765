/** Takes screenshots of pages with a headless Chromium, over its DevTools protocol. */
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Process } from '../../support/process.ts'
import { until } from '../../support/until.ts'

export interface Page {
  readonly url: string
  readonly width: number
  readonly height: number
  /** The part of the page in the screenshot. */
  readonly clip: { readonly x: number; readonly y: number; readonly width: number; readonly height: number }
  readonly storage: Readonly<Record<string, string>>
  /** Texts that are on the page when it is complete. */
  readonly complete: readonly string[]
}

/** Returns the text of a page, including shadow trees. */
const ALL_TEXT = `(() => {
  const texts = []
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) texts.push(node.data)
    if (node.shadowRoot) walk(node.shadowRoot)
    for (const child of node.childNodes) walk(child)
  }
  walk(document.body)
  return texts.join(' ')
})()`

type Answer = Readonly<Record<string, unknown>>

/** Takes a screenshot as a PNG. `program` is the path of Chromium. */
export async function picture(program: string, { url, width, height, clip, storage, complete }: Page): Promise<Buffer> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'chromium-'))
  const options = ['--headless', '--no-sandbox', '--hide-scrollbars', '--remote-debugging-port=0']
  await using chromium = new Process(program, [...options, `--user-data-dir=${folder.path}`])
  const [address = ''] = /ws:\S+/.exec(await chromium.untilLine('DevTools listening', 30_000)) ?? []
  using browser = await DevTools.connect(address)
  const { targetId } = await browser.command('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await browser.command('Target.attachToTarget', { targetId, flatten: true })
  const onPage = (method: string, params: object = {}) => browser.command(method, params, String(sessionId))
  const evaluate = async (expression: string): Promise<unknown> => {
    const { result } = await onPage('Runtime.evaluate', { expression, awaitPromise: true })
    return Object(result).value
  }
  const source = `for (const [key, value] of Object.entries(${JSON.stringify(storage)})) localStorage.setItem(key, value)`
  await onPage('Page.enable')
  await onPage('Page.addScriptToEvaluateOnNewDocument', { source })
  await onPage('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false })
  await onPage('Page.navigate', { url })
  const shows = async () => {
    const words = String(await evaluate(ALL_TEXT))
    return complete.every((text) => words.includes(text))
  }
  await until(`${complete.join(', ')} on ${url}`, shows, 60_000, 200)
  // Wait until all animations have ended.
  await evaluate(
    'Promise.all(document.getAnimations().map(({ finished }) => finished)).then(() => document.fonts.ready)',
  )
  const { data } = await onPage('Page.captureScreenshot', { format: 'png', clip: { ...clip, scale: 1 } })
  return Buffer.from(String(data), 'base64')
}

class DevTools implements Disposable {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, PromiseWithResolvers<Answer>>()
  #count = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => {
      const { id, result, error } = JSON.parse(String(data))
      if (error === undefined) this.#waiting.get(id)?.resolve(result)
      else this.#waiting.get(id)?.reject(new Error(`Chromium refuses: ${JSON.stringify(error)}`))
    })
  }

  static async connect(address: string): Promise<DevTools> {
    const socket = new WebSocket(address)
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve)
      socket.addEventListener('error', () => reject(new Error(`no connection to ${address}`)))
    })
    return new DevTools(socket)
  }

  /** Sends a command. `sessionId`: the session of a page; default: the browser's own. */
  command(method: string, params: object, sessionId?: string): Promise<Answer> {
    this.#count += 1
    const waiting = Promise.withResolvers<Answer>()
    this.#waiting.set(this.#count, waiting)
    this.#socket.send(JSON.stringify({ id: this.#count, method, params, sessionId }))
    return waiting.promise
  }

  [Symbol.dispose](): void {
    this.#socket.close()
  }
}
