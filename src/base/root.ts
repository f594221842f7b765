import { findPackageJSON } from 'node:module'
import { pathToFileURL } from 'node:url'

/** The folder of `package.json`, for sources and bundle alike, as a URL that ends with a slash. */
export const ROOT = new URL('./', pathToFileURL(findPackageJSON(import.meta.url) ?? 'package.json'))
