import Base
import Storage
import Telemetry
package import Worker

/// `store copy`: copies everything to another database.
extension CommandContext {
    package func copyStore(from source: String, to target: String, isJSON: Bool) async throws -> ExitCode {
        let source = try location(source, of: "--from")
        let target = try location(target, of: "--to")
        guard source != target else {
            throw CommandFailure(.usage, "--from and --to name the same database; name the one to copy to with --to")
        }
        guard let from = try await open(source, time: Self.clock(of: source), makesTables: false) else {
            throw CommandFailure(missing: source)
        }
        let summary = try await Self.using(from) {
            if try await from.isReceiving { throw CommandFailure(unfinished: source) }
            // Spilled results of the source are stored there while it is still in use.
            if try await from.movedTo == nil { try await recoverResults(into: from, of: source, use: .changing) }
            guard let to = try await open(target, time: Self.clock(of: target), makesTables: true) else {
                preconditionFailure("a database that may be created is never missing")
            }
            return try await Self.using(to) { try await copy(from, source, into: to, target) }
        }
        Output.standard.line(
            isJSON
                ? StoreCopyReport.json(of: summary, from: source, to: target)
                : StoreCopyReport.text(of: summary, from: source, to: target)
        )
        return .success
    }

    private func copy(
        _ from: any StoreArchive,
        _ source: DatabaseLocation,
        into to: any StoreArchive,
        _ target: DatabaseLocation
    ) async throws -> StoreCopy.Summary {
        let title = StoreCopyReport.title(of: target)
        if let newLocation = try await from.movedTo, newLocation != title, newLocation != StoreCopy.unfinished(title) {
            diagnostics.warning(
                "the database was moved before; changes made there since then are not copied",
                ["moved_to": newLocation]
            )
        }
        let progress = TerminalProgress(to: .error)
        defer { progress.clear() }
        let copying = Task {
            try await StoreCopy(
                from: from,
                to: to,
                at: title,
                pause: { [time] in try await time.sleep(for: $0) },
                report: { progress.show(StoreCopyReport.line(of: $0)) }
            )
            .run()
        }
        // A cancelled copy leaves the source unchanged and usable.
        let signals = await SignalStream.start()
        let stopping = Task { for await signal in signals.signals where signal != .hangUp { copying.cancel() } }
        defer {
            stopping.cancel()
            signals.stop()
        }
        do {
            return try await copying.value
        } catch let failure as StoreCopy.Failure {
            throw CommandFailure(failure, from: source, to: target)
        } catch is CancellationError {
            throw CommandFailure(
                .leftForLater,
                "the copy was stopped; \(source) can be used as before, and the same command continues the copy"
            )
        }
    }

    private func location(_ text: String, of flag: String) throws(CommandFailure) -> DatabaseLocation {
        let value = SettingSources.GivenValue(value: text, origin: flag, isArgument: true)
        do throws(SettingValue.Refusal) {
            try SettingValue.checkText(text)
            return try DatabaseLocation.read(value, files: inputs.files)
        } catch {
            throw CommandFailure(.configuration, "\(flag): \(error.message)")
        }
    }
}
