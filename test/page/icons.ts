/**
 * `node test/page/icons.ts` creates the icons of the installed page from the icon of the browser tab. The icons fill
 * their square, because each system crops the corners in its own way.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { profile, quit } from './support/browser.ts'

const FOLDER = 'src/web/ui/app/public'
const square = readFileSync(`${FOLDER}/icon.svg`, 'utf8').replace(' rx="8"', '')

for (const size of [180, 192, 512]) {
  const context = await profile({ width: size, height: size })
  const page = await context.newPage()
  await page.setContent(`<style>body { margin: 0 } svg { display: block }</style>${square}`)
  writeFileSync(`${FOLDER}/icon-${size}.png`, await page.screenshot())
  await context.close()
}
await quit()
