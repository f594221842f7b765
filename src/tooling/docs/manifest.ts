/** The manifest of an app of the emulated hub: its JSON Schema for editors, and its table. */
import { ManifestFields, ManifestSchema } from '../../emulator/data/manifest.ts'
import { fieldsTable, schemaFile } from './hub-file.ts'

/** Text of `config/app.schema.json`. */
export function manifestSchema(): string {
  return schemaFile(ManifestSchema, 'app of the emulated hub of hub2mqtt')
}

export function manifestSection(): string {
  return fieldsTable(ManifestFields)
}
