import Crypto
package import Scheduler
package import Storage
import Telemetry

/// Stores and reports the results of spill files.
extension CommandContext {
    /// Reports results that could not be stored.
    package func report(_ unstored: UnstoredResults, in spill: ResultSpillFile) {
        if unstored.spilled > 0, let path = spill.path {
            diagnostics.error(
                "results could not be stored and were kept in a file: the next start stores them, or results recover FILE",
                ["results": "\(unstored.spilled)", "file": path]
            )
        }
        if unstored.lost > 0 {
            diagnostics.error(
                "results could not be stored and are lost: where refresh tokens rotate, these users must sign in again",
                ["lost": "\(unstored.lost)"]
            )
        }
    }

    /// Stores the results in spill files of the configured database, before any other use of it.
    func recoverResults(into store: any GrantStore, use: DatabaseAccess) async throws {
        try await recoverResults(into: store, of: configuration.database, use: use)
    }

    package func recoverResults(into store: any GrantStore, of database: DatabaseLocation, use: DatabaseAccess)
        async throws
    {
        let location = spillLocation(of: database)
        do {
            guard try !SpillRecovery.files(of: location).isEmpty else { return }
            try await SpillRecovery(store: store, vault: try openVault(), context: self).recoverAll(of: location)
        } catch  where use == .changing && Self.endsWork(error) {
            throw error
        } catch {
            // The file stays in place, so that the next process that opens the database tries again.
            diagnostics.error(
                "results that were not saved before cannot be stored now",
                ["folder": location.folder, "error": CommandFailure(error).message]
            )
        }
    }

    /// `true` if this error of the recovery forbids refreshes, because they could send a token that Google has rotated
    /// since.
    ///
    /// Otherwise a spill file does not exist, as far as can be known, or only another key ring opens it.
    static func endsWork(_ error: any Error) -> Bool {
        switch error {
        case is StoreError, is CommandFailure: true
        case let error as SystemCallError: error.mayPass
        default: false
        }
    }
}
