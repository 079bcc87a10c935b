import Base
import Crypto
import Records
import Storage

extension Command {
    /// `grants export --plaintext`: writes everything that `grants import` needs to import the grants elsewhere.
    static let exportGrants = Command(
        words: ["grants", "export"],
        summary: "write all grants as JSON lines",
        discussion: """
            Writes all grants with their states to standard output, in the form that grants import reads. The tokens \
            are in plain text, so --plaintext is required. To move a whole database sealed, use refresh-worker backup. \
            A grant whose tokens cannot be opened with the key ring is reported and left out, and the exit code is 78.
            """,
        options: [
            .toggle("plaintext", "confirm that the output contains usable tokens"),
            .toggle("json", "changes nothing: an export is JSON lines in any case"),
        ],
        settings: [.config, .database, .keyFile, .keyCommand, .logLevel],
        examples: [
            "refresh-worker grants export --plaintext | age -r KEY > grants.jsonl.age":
                "encrypt the tokens before they reach the disk"
        ],
        exitCodes: .ofDatabase()
    ) { arguments, context, _ in
        guard arguments.has("plaintext") else {
            throw CommandError(
                .usage,
                """
                an export holds every token in plain text, usable by every reader: give --plaintext to confirm
                to keep or move the grants sealed, use 'refresh-worker backup FILE' and take the key file along
                """
            )
        }
        let vault = try context.openVault()
        let store = try await context.openExistingStore(for: .reading)
        let output = BlockingCallQueue(label: "refresh-worker.output")
        var unreadable = 0
        for try await page in GrantPages(store: store) {
            let exported = ExportedPage(page, opening: vault)
            for problem in exported.problems { Output.error.line("refresh-worker: \(problem)") }
            unreadable += exported.problems.count
            if !exported.text.isEmpty { await output.run { Output.standard.write(exported.text) } }
        }
        await store.close()
        guard unreadable == 0 else {
            throw CommandError(
                .configuration,
                "not in the export: \(unreadable.counted("grant")), because the key ring does not open their tokens"
            )
        }
        return .success
    }
}

/// A page of grants as the export prints it.
struct ExportedPage {
    /// A line for each grant that can be opened, with its tokens.
    var text = ""
    /// A line for each that cannot.
    var problems: [String] = []

    init(_ grants: [Grant], opening vault: TokenVault) {
        for grant in grants {
            do throws(CryptoError) {
                text += try grant.exported(from: vault).text + "\n"
            } catch {
                problems.append("user \(DisplayedText(grant.userID)): a stored token cannot be opened: \(error)")
            }
        }
    }
}
