import Base
import Crypto
import Storage
package import Worker

/// `grants export --plaintext`: writes everything that `grants import` needs to import the grants elsewhere.
extension CommandContext {
    package func exportGrants(isPlaintext: Bool) async throws -> ExitCode {
        guard isPlaintext else {
            throw CommandFailure(
                .usage,
                """
                an export holds every token in plain text, usable by every reader: give --plaintext to confirm
                to keep or move the grants sealed, use 'refresh-worker backup FILE' and take the key file along
                """
            )
        }
        let vault = try openVault()
        let store = try await openExistingStore(for: .reading)
        let output = BlockingCallQueue(label: "refresh-worker.output")
        var unreadable = 0
        for try await page in GrantPages(store: store, state: nil, size: Self.pageSize) {
            let export = GrantExport(page: page, vault: vault)
            for problem in export.problems { Output.error.line("refresh-worker: \(problem)") }
            unreadable += export.problems.count
            if !export.text.isEmpty {
                try await output.run { Output.standard.write(export.text) }
            }
        }
        await store.close()
        guard unreadable == 0 else {
            throw CommandFailure(
                .configuration,
                "\(unreadable) grants are not in the export, because the key ring does not open their tokens"
            )
        }
        return .success
    }
}
