import Base
import Commands
import Storage
import Worker

/// The function of each command.
extension CommandContext {
    func run(_ command: Command) async throws -> ExitCode {
        do {
            return try await perform(command)
        } catch let error as StoreError {
            throw await Self.confirmed(error)
        }
    }

    private func perform(_ command: Command) async throws -> ExitCode {
        switch command {
        case .work where configuration.runsOnce: try await runPass()
        case .work: try await workAsDaemon()
        case .vendToken(let user, let minimumLifetime, let isJSON):
            try await vendToken(of: user, minimumLife: minimumLifetime, isJSON: isJSON)
        case .disconnectGrant(let user, let isJSON): try await disconnect(user, isJSON: isJSON)
        case .generateKeys(let isLost, let isJSON): try await generateKeys(isLost: isLost, isJSON: isJSON)
        case .listKeys(let isJSON): try await listKeys(asJSON: isJSON)
        case .rotateKeys(let isJSON): try await rotateKeys(isJSON: isJSON)
        case .retireKey(let id, let isLost, let isJSON): try await retireKey(id, isLost: isLost, isJSON: isJSON)
        case .replayNotices(let user, let span, let isJSON):
            try await replayNotices(of: user, within: span, isJSON: isJSON)
        case .manageGoogleEvents(let order): try await manageGoogleEvents(order)
        case .makeCredential(let service, let isOperator, let isJSON):
            try makeCredential(of: service, isOperator: isOperator, isJSON: isJSON)
        case .makeHandle(let service, let user, let isJSON): try makeHandle(of: user, for: service, isJSON: isJSON)
        case .showStatus(let isJSON): try await showStatus(asJSON: isJSON)
        case .watchStatus(let isJSON): try await watchStatus(asJSON: isJSON)
        case .examine(let isJSON): try await examine(isJSON: isJSON)
        case .backUp(let file, let isJSON): try await backUp(to: file, isJSON: isJSON)
        case .copyStore(let source, let target, let isJSON):
            try await copyStore(from: source, to: target, isJSON: isJSON)
        case .recoverResults(let file, let isJSON): try await recoverResults(from: file, isJSON: isJSON)
        case .importGrants(let options): try await importGrants(options)
        case .importUsers(let order): try await importUsers(order)
        case .exportGrants(let isPlaintext): try await exportGrants(isPlaintext: isPlaintext)
        case .listUsers(let isJSON): try await listUsers(isJSON: isJSON)
        case .showUser(let user, let isJSON): try await showUser(user, isJSON: isJSON)
        case .deleteUser(let user, let isJSON): try await deleteUser(user, isJSON: isJSON)
        case .listGrants(let options): try await listGrants(options)
        case .showHistory(let user, let isJSON): try await showHistory(of: user, isJSON: isJSON)
        case .retryGrants(let options): try await retryGrants(options)
        case .setClient(let former, let clientID, let isJSON):
            try await setClient(from: former, to: clientID, isJSON: isJSON)
        case .showGrant(let user, let isJSON): try await showGrant(of: user, isJSON: isJSON)
        case .addGrant(let user, let tokenFile, let clientID, let isJSON):
            try await addGrant(of: user, tokenFile: tokenFile, clientID: clientID, isJSON: isJSON)
        case .showVersion, .showHelp: .success
        }
    }

    private func workAsDaemon() async throws -> ExitCode {
        try await WorkerDaemon(context: self, reporter: statusReporter).run()
    }
}
