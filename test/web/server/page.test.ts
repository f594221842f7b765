import { describe, expect, it } from 'vitest'
import { openDoor } from './door.ts'

const page = {
  'index.html': '<!doctype html>',
  'assets/app-abc123.js': 'plain',
  'assets/app-abc123.js.br': 'brotli',
  'assets/app-abc123.js.gz': 'gzipped',
  'icon.svg': '<svg/>',
}

describe('the page', () => {
  it('is served below any path, for GET only, never cached, and its hashed files without expiry', async () => {
    const { ask } = await openDoor({ page })
    for (const path of ['/', '/index.html', '/?a=b']) {
      const answer = await ask(path)
      expect(answer.body).toBe('<!doctype html>')
      expect(answer.headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' })
    }
    expect((await ask('/', { method: 'POST' })).status).toBe(405)
    const asset = await ask('/assets/app-abc123.js')
    expect(asset.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
    })
  })

  it.each([
    ['gzip, deflate, br', 'brotli', 'br'],
    ['gzip', 'gzipped', 'gzip'],
    ['br;q=0, gzip;q=0.5', 'gzipped', 'gzip'],
    ['', 'plain', undefined],
  ])('is compressed as the browser accepts it: %s', async (accepted, body, encoding) => {
    const { ask } = await openDoor({ page })
    const answer = await ask('/assets/app-abc123.js', { headers: { 'accept-encoding': accepted } })
    expect(answer.body).toBe(body)
    expect(answer.headers['content-encoding']).toBe(encoding)
    expect(answer.headers['content-type']).toBe('text/javascript; charset=utf-8')
  })

  it('loads and runs only its own files, and in no frame of others', async () => {
    const { ask } = await openDoor({ page })
    const { headers } = await ask('/')
    expect(headers['content-security-policy']).toBe(
      "default-src 'self'; img-src 'self' data:; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'",
    )
    expect(headers['referrer-policy']).toBe('no-referrer')
  })

  it('may be framed by origins that the configuration names, and by Home Assistant through its ingress', async () => {
    const env = {
      HTTP_FRAME_ANCESTORS: 'https://dashboard.lan',
      HTTP_INGRESS: 'true',
      HTTP_TRUSTED_PROXIES: '127.0.0.1',
    }
    const { ask } = await openDoor({ page, env: { ...env, HTTP_PASSWORD: 'a long password' } })
    expect((await ask('/')).headers['content-security-policy']).toMatch(/frame-ancestors https:\/\/dashboard\.lan$/)
    const ingress = await ask('/', { headers: { 'x-ingress-path': '/x' } })
    expect(ingress.headers['content-security-policy']).toMatch(/frame-ancestors 'self' https:\/\/dashboard\.lan$/)
  })

  it.each(['/../package.json', '/%2e%2e/package.json', '/assets/../../x', '/assets', '/nothing', '//index.html'])(
    'serves no file but its own: %s',
    async (path) => {
      const { ask } = await openDoor({ page })
      expect((await ask(path)).status).toBe(404)
    },
  )

  it('explains how to build it if it is not built', async () => {
    const { ask } = await openDoor()
    const answer = await ask('/')
    expect(answer).toMatchObject({ status: 200, body: expect.stringContaining('npm run build:page') })
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8')
  })
})
