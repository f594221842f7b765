import { render } from 'preact'
import { showLanguage } from './languages.ts'
import { open } from './session.ts'
import { Shell } from './views/shell.tsx'

await showLanguage()
const root = document.querySelector('#page')
if (root !== null) render(<Shell />, root)
await open()
