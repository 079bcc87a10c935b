import Storage
import Worker

/// Imports grants from the secrets of AWS Secrets Manager, one page of names at a time.
///
/// Only the stored grants persist between runs: an interrupted run can be started again, and does not read the secrets
/// of users who are already stored.
struct SecretsManagerImport {
    /// The results so far.
    struct Tally: Equatable, Sendable {
        var grants = ImportTally()
        /// Secrets that are marked for deletion, or were deleted during the import.
        var deleted = 0

        var all: Int { grants.read + deleted }

        /// One line for people.
        func sentence(isDryRun: Bool) -> String {
            isDryRun
                ? """
                dry run, nothing was stored; \(all) secrets: \(grants.stored) to store, \(grants.replaced) to replace, \
                \(grants.kept) to keep, \(grants.bad) bad, \(deleted) deleted
                """
                : """
                \(all) secrets: \(grants.stored) stored, \(grants.replaced) replaced, \(grants.kept) kept, \
                \(grants.bad) bad, \(deleted) deleted
                """
        }
    }

    let secrets: SecretsManagerReader
    let writer: ImportedGrantWriter
    /// Receives a line for each bad secret.
    let report: (String) -> Void
    /// Receives a line about the outcome of each good secret.
    let detail: (String) -> Void

    private(set) var tally = Tally()

    init(
        secrets: SecretsManagerReader,
        writer: ImportedGrantWriter,
        report: @escaping (String) -> Void,
        detail: @escaping (String) -> Void
    ) {
        self.secrets = secrets
        self.writer = writer
        self.report = report
        self.detail = detail
    }

    /// Imports all pages; `onPage` receives the results so far after each page.
    mutating func run(onPage: (Tally) -> Void) async throws {
        var token: String?
        repeat {
            let page = try await secrets.page(after: token)
            token = page.nextToken
            try await importPage(page.secrets)
            onPage(tally)
        } while token != nil
    }

    private mutating func importPage(_ listed: [SecretsManagerClient.ListedSecret]) async throws {
        var toRead: [SecretsManagerReader.UserSecret] = []
        for secret in listed {
            guard let named = secrets.named(secret) else { continue }
            if secret.isMarkedDeleted {
                tally.deleted += 1
            } else if writer.existing == .keep, try await writer.store.grant(ofUser: named.userID) != nil {
                count(.kept, of: named)
            } else {
                toRead.append(named)
            }
        }
        let isFirst = tally.grants.stored + tally.grants.replaced + tally.grants.bad == 0
        let results = try await secrets.grants(of: toRead, allowsAllDenied: !isFirst)
        var outcomes = try await writer.store(results.compactMap(\.grant))[...]
        for (named, result) in zip(toRead, results) {
            switch result {
            case .grant:
                if let outcome = outcomes.popFirst() { count(outcome, of: named) }
            case .deleted:
                tally.deleted += 1
            case .bad(let problem):
                tally.grants.countBad(problem.message)
                report("secret \(DisplayedText(named.secret)): \(problem.message)")
            }
        }
    }

    private mutating func count(_ outcome: ImportedGrantWriter.Outcome, of named: SecretsManagerReader.UserSecret) {
        let user = "user \(DisplayedText(named.userID))"
        switch outcome {
        case .stored:
            tally.grants.stored += 1
            detail("\(user): \(writer.isDryRun ? "would be " : "")stored")
        case .replaced:
            tally.grants.replaced += 1
            detail("\(user): \(writer.isDryRun ? "would be " : "")replaced")
        case .kept:
            tally.grants.kept += 1
            let reason =
                writer.existing == .keep ? "is stored already" : "is stored already, and the secret is not newer"
            detail("\(user) \(reason): kept")
        case .keptEnded:
            tally.grants.kept += 1
            detail("\(user) \(GrantImport.endedGrant)")
        case .refused:
            tally.grants.countBad("the user was deleted")
            report("\(user) was deleted and is not restored")
        }
    }
}
