import { type IncomingHttpHeaders, request, type ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { Icons, typeOf } from '../../../src/web/server/api/icons.ts'
import { emulate, hold, listed, serve } from '../../hub/support.ts'

const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(100)])

/** Returns the icons of a hub, whose server answers requests for icons with `answer`. */
async function iconsOf(
  hub: string,
  answer: (path: string, headers: IncomingHttpHeaders, response: ServerResponse) => void,
): Promise<Icons> {
  const url = await serve((incoming, response) => {
    const { url: path = '', method, headers } = incoming
    if (path.startsWith('/icon/')) return answer(path, headers, response)
    const onward = request(new URL(path, hub), { method, headers, agent: false }, (found) => {
      response.writeHead(found.statusCode ?? 502, found.headers)
      found.pipe(response)
    })
    incoming.pipe(onward)
  })
  return await followed(url)
}

async function followed(url: string): Promise<Icons> {
  const held = hold(url, { realtime: false })
  await listed(held)
  return new Icons(new Map([['home', held]]), systemClock)
}

it.each([
  ['image/png', png],
  ['image/jpeg', Buffer.from('\xff\xd8\xff\xe0', 'latin1')],
  ['image/webp', Buffer.from('RIFF\x00\x00\x00\x00WEBP', 'latin1')],
  ['image/svg+xml', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')],
  ['image/svg+xml', Buffer.from('\uFEFF<?xml version="1.0"?>\n<!-- made by hand -->\n<svg>')],
  [
    'image/svg+xml',
    Buffer.from(`${'<!-- -->\n'.repeat(100)}<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "">\n<SVG>`),
  ],
  // The end of each of these constructs is beyond the part that the bridge reads.
  [undefined, Buffer.from('<!---->'.repeat(36_000))],
  [undefined, Buffer.from('<!-->'.repeat(50_000))],
  [undefined, Buffer.from('<?xml '.repeat(40_000))],
  [undefined, Buffer.from(`<!DOCTYPE svg${' '.repeat(200_000)}`)],
  [undefined, Buffer.from('<!doctype html><svg>')],
  [undefined, Buffer.from('<html><svg/></html>')],
  [undefined, Buffer.from('GIF89a')],
  [undefined, Buffer.from('<svgx>')],
  [undefined, Buffer.alloc(0)],
])('a picture is recognised as %s by its content', (type, body) => {
  expect(typeOf(body)).toBe(type)
})

describe('icons', () => {
  it('are read from the hub only, without the key, up to 256 KiB, and are cached', async () => {
    const pictures: Record<string, Buffer | undefined> = {
      '/icon/small': png,
      '/icon/large': Buffer.concat([png, Buffer.alloc(256 * 1024)]),
      '/icon/page': Buffer.from('<html></html>'),
      '/icon/second': Buffer.from('<svg/>'),
    }
    const records: Record<string, { iconObj: object; icon: unknown }> = {
      small: { iconObj: { url: '/icon/small' }, icon: null },
      large: { iconObj: { url: '/icon/large' }, icon: null },
      page: { iconObj: { url: '/icon/page' }, icon: '/icon/second' },
      elsewhere: { iconObj: { url: 'http://127.0.0.1:1/icon' }, icon: '//127.0.0.1:1/x' },
      climbing: { iconObj: { url: '/icon/../icon/small' }, icon: '/icon/small\r\nx: y' },
      none: { iconObj: {}, icon: 7 },
    }
    const apps = Object.entries(records).map(([id, record]) => ({ id, record }))
    const hub = await emulate({ flavour: 'older', apps })
    const asked: string[] = []
    const icons = await iconsOf(hub.url, (path, { authorization }, response) => {
      asked.push(`${path}${authorization === undefined ? '' : ' with the key'}`)
      const picture = pictures[path]
      response.writeHead(picture === undefined ? 404 : 200).end(picture)
    })
    expect(await icons.get('home', 'small')).toEqual({ type: 'image/png', body: png })
    expect(await icons.get('home', 'small')).toEqual({ type: 'image/png', body: png })
    expect(asked).toEqual(['/icon/small'])
    expect(await icons.get('home', 'page')).toMatchObject({ type: 'image/svg+xml' })
    await expect(icons.get('home', 'large')).rejects.toThrow('larger than')
    for (const app of ['elsewhere', 'climbing', 'none', 'not-there']) {
      expect(await icons.get('home', app), app).toBeUndefined()
    }
    expect(await icons.get('nowhere', 'small')).toBeUndefined()
    expect(asked).toEqual(['/icon/small', '/icon/page', '/icon/second', '/icon/large'])
  })

  it('are requested once, however many clients want the same one at the same time', async () => {
    const hub = await emulate({ flavour: 'older', apps: [{ id: 'a' }, { id: 'b' }] })
    const icons = await followed(hub.url)
    const got = await Promise.all(['a', 'a', 'b', 'a'].map((id) => icons.get('home', id)))
    expect(got.map((icon) => icon?.type)).toEqual(Array(4).fill('image/svg+xml'))
    expect(hub.requests.filter(({ path }) => path.startsWith('/icon/'))).toHaveLength(2)
  })

  it('are requested two at a time, and the last used ones are cached, up to 8 MiB', async () => {
    const apps = Array.from({ length: 40 }, (_, n) => ({
      id: `app.${n}`,
      record: { iconObj: { url: `/icon/${n}` }, icon: null },
    }))
    const hub = await emulate({ flavour: 'older', apps })
    const asked: string[] = []
    const [open, most] = [new Set<string>(), { count: 0 }]
    const icons = await iconsOf(hub.url, (path, _, response) => {
      asked.push(path)
      open.add(path)
      most.count = Math.max(most.count, open.size)
      // Answer after a round trip, in which other requests would have arrived.
      void fetch(`${hub.url}/api/manager/system/ping`).then(() => {
        open.delete(path)
        response.end(Buffer.concat([png, Buffer.alloc(250 * 1024)]))
      })
    })
    await Promise.all(apps.map(({ id }) => icons.get('home', id)))
    expect([asked.length, most.count]).toEqual([40, 2])
    await icons.get('home', 'app.39')
    expect(asked).toHaveLength(40)
    await icons.get('home', 'app.0')
    expect(asked.slice(40)).toEqual(['/icon/0'])
  })
})
