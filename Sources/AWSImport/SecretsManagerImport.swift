import Store
import WorkerCommands
import WorkerConfiguration

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
    let intake: ImportedGrantWriter
    /// Receives a line for each bad secret.
    let report: (String) -> Void
    /// Receives a line about the outcome of each good secret.
    let detail: (String) -> Void

    private(set) var tally = Tally()

    init(
        secrets: SecretsManagerReader,
        intake: ImportedGrantWriter,
        report: @escaping (String) -> Void,
        detail: @escaping (String) -> Void
    ) {
        self.secrets = secrets
        self.intake = intake
        self.report = report
        self.detail = detail
    }

    /// Imports all pages; `onTurn` receives the results so far after each page.
    mutating func run(onTurn: (Tally) -> Void) async throws {
        var token: String?
        repeat {
            let page = try await secrets.page(after: token)
            token = page.nextToken
            try await take(page.secrets)
            onTurn(tally)
        } while token != nil
    }

    private mutating func take(_ listed: [SecretsManagerClient.Listed]) async throws {
        var wanted: [SecretsManagerReader.Named] = []
        for secret in listed {
            guard let named = secrets.named(secret) else { continue }
            if secret.isMarkedDeleted {
                tally.deleted += 1
            } else if intake.existing == .keep, try await intake.store.grant(ofUser: named.userID) != nil {
                count(.kept, of: named)
            } else {
                wanted.append(named)
            }
        }
        let isFirst = tally.grants.stored + tally.grants.replaced + tally.grants.bad == 0
        let readings = try await secrets.grants(of: wanted, mayAllBeDenied: !isFirst)
        var outcomes = try await intake.store(readings.compactMap(\.grant))[...]
        for (named, reading) in zip(wanted, readings) {
            switch reading {
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

    private mutating func count(_ outcome: ImportedGrantWriter.Outcome, of named: SecretsManagerReader.Named) {
        let user = "user \(DisplayedText(named.userID))"
        switch outcome {
        case .stored:
            tally.grants.stored += 1
            detail("\(user): \(intake.isDryRun ? "would be " : "")stored")
        case .replaced:
            tally.grants.replaced += 1
            detail("\(user): \(intake.isDryRun ? "would be " : "")replaced")
        case .kept:
            tally.grants.kept += 1
            let reason = intake.existing == .keep ? "is stored already" : "what is stored is not older than the secret"
            detail("\(user): \(reason): kept")
        case .keptEnded:
            tally.grants.kept += 1
            detail("\(user) \(GrantImport.endedGrant)")
        case .refused:
            tally.grants.countBad("the user was deleted")
            report("\(user) was deleted and is not restored")
        }
    }
}
