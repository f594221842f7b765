/** The number of cases for a property test: `RUNS`, for a long search, or the usual number. */
export const runs = (usual: number): number => Number(process.env['RUNS'] ?? usual)
