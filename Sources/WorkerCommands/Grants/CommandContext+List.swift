import Clocks
import JSON
import Store
package import WorkerConfiguration
import WorkerLifecycle

/// `grants list` and `grants show USER`: print stored grants without their tokens.
extension CommandContext {
    /// The number of grants read at a time, so that memory does not grow with their number.
    static let pageSize = 500

    package func listGrants(inState name: String?, isJSON: Bool) async throws -> ExitCode {
        let store = try await openExistingStore(for: .reading)
        let output = BlockingCallQueue(label: "refresh-worker.output")
        let state = name.flatMap { GrantState(rawValue: $0) }
        var table = GrantTable()
        var isFirst = true
        for try await page in GrantPages(store: store, state: state, size: Self.pageSize) {
            let lines =
                isJSON
                ? page.map { GrantDocument.line(of: $0).text }
                : table.lines(of: page, withHeader: isFirst, at: time.now)
            isFirst = false
            try await output.run { Output.standard.line(lines.joined(separator: "\n")) }
        }
        if isFirst && !isJSON { Output.error.line("no grant \(name.map { "in state \($0) " } ?? "")is stored") }
        await store.close()
        return .success
    }

    package func showGrant(of user: String, isJSON: Bool) async throws -> ExitCode {
        let store = try await openExistingStore(for: .reading)
        guard let grant = try await store.grant(ofUser: user) else {
            await store.close()
            throw CommandFailure(.unknownUser, "no grant of this user is stored")
        }
        // One more than is shown, to know if there are more.
        let history = try await store.events(of: grant.id, atMost: GrantReport.historyLimit + 1)
        await store.close()
        if isJSON {
            Output.standard.line(GrantDocument.lineWithWarnings(of: grant, at: time.now).bytes)
        } else {
            GrantReport.lines(about: grant, history: history, at: time.now).forEach(Output.standard.line)
        }
        return .success
    }
}
