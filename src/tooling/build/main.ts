/** `npm run build` */
import { fileURLToPath } from 'node:url'
import { ROOT } from '../../base/root.ts'
import { bundle } from './bundle.ts'

await bundle(fileURLToPath(new URL('dist', ROOT)))
