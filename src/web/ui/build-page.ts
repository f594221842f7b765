import { buildPage, weighPage } from './build.ts'

await buildPage()
const files = weighPage()
for (const { path, bytes } of files) console.log(`${String(bytes).padStart(7)} bytes  ${path}`)
const total = files.reduce((sum, { bytes }) => sum + bytes, 0)
console.log(`${String(total).padStart(7)} bytes  in total, compressed (brotli)`)
