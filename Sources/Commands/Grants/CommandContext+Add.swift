import Base
import Crypto
private import Glibc
import Storage
package import Worker

/// `grants add USER`: stores one grant and replaces the user's stored one.
extension CommandContext {
    package func addGrant(of user: String, tokenFile: String?, clientID: String?, isJSON: Bool) async throws
        -> ExitCode
    {
        let vault = try openVault()
        if tokenFile == nil, isatty(STDIN_FILENO) == 1 {
            Output.error.line("type or paste a refresh token, or the JSON of a grant; then Enter and Ctrl-D")
        }
        let input = try await BlockingCallQueue(label: "refresh-worker.input").run {
            try tokenFile.map { try Secret.read(file: $0) } ?? Secret.read(descriptor: STDIN_FILENO)
        }
        let added: ImportedGrant
        do throws(CommandFailure) {
            added = try AddedGrant.read(
                input,
                forUser: user,
                clientID: clientID,
                configured: configuration.clientIDs,
                at: time.now
            )
        } catch {
            throw CommandFailure(error.exitCode, "no grant of user \(DisplayedText(user)) was added: \(error.message)")
        }
        let store = try await openStore()
        let heartbeat = WorkerHeartbeat(
            store: store,
            ring: vault.ring,
            workerName: workerName,
            diagnostics: diagnostics
        )
        try await heartbeat.report()
        let writer = ImportedGrantWriter(
            store: store,
            vault: vault,
            time: time,
            random: random,
            existing: .replace,
            firstRefresh: .atOnce
        )
        let outcome = try await writer.store([added])
        let stored = try await store.grant(ofUser: user)
        await heartbeat.leave()
        await store.close()
        let verb: String
        switch outcome.first {
        case .keptEnded:
            throw CommandFailure(.userMustAct, "\(DisplayedText(user)) \(GrantImport.endedGrant)")
        case .refused:
            throw CommandFailure(.userMustAct, "\(DisplayedText(user)) was deleted and is not restored")
        case .replaced: verb = "replaced"
        case .stored, .kept, nil: verb = "added"
        }
        guard !isJSON else {
            var line = JSONLine()
            line.field("result", verb)
            if let stored { GrantDocument.write(stored, to: &line) }
            Output.standard.line(line.bytes)
            return .success
        }
        let due = stored?.dueAt.map { ", due \(RelativeTime($0, from: time.now))" } ?? ""
        Output.standard.line("\(verb) \(DisplayedText(user)): \(stored?.state.rawValue ?? "")\(due)")
        return .success
    }
}
