/** Locates the program's own files, whether it runs from its sources or as a bundle. */
import { findPackageJSON } from 'node:module'
import { pathToFileURL } from 'node:url'

/** The folder of `package.json`, as a URL that ends with a slash. */
export const ROOT = new URL('./', pathToFileURL(findPackageJSON(import.meta.url) ?? 'package.json'))
