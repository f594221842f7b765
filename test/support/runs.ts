/** How many cases a property is tried with: as many as `RUNS` says, for a long search, or else its usual number. */
export const runs = (usual: number): number => Number(process.env['RUNS'] ?? usual)
