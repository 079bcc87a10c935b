import Storage

extension Store {
    /// Runs `body`, which uses this store, and closes it in every case.
    func closing<Result>(after body: () async throws -> Result) async throws -> Result {
        do {
            let result = try await body()
            await close()
            return result
        } catch {
            await close()
            throw error
        }
    }
}
