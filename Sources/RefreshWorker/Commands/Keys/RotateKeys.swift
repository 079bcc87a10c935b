import Base
import Crypto
import Storage

extension Command {
    /// `keys rotate`: replaces the sealing key.
    static let rotateKeys = Command(
        words: ["keys", "rotate"],
        summary: "add a new key and seal all tokens with it",
        discussion: """
            Adds a new key to the key ring, waits until every live worker reports that it holds it, then seals the \
            stored tokens again while the workers run. An interrupted rotation continues when the command is run \
            again. The old key stays in the ring until it is retired. With --json, progress is written to standard \
            error.
            """,
        options: [.jsonObject],
        settings: [.config, .database, .keyFile, .keyCommand, .keyWrapCommand, .logLevel],
        examples: [
            "refresh-worker keys rotate":
                "once a year, or after a person who knew the key has left"
        ],
        exitCodes: .ofDatabase()
    ) { _, context, output in
        let vault = try context.openVault()
        let signals = await SignalStream.start()
        // The rotation reads it between batches.
        let stop = Shared(false)
        let listener = Task {
            for await signal in signals.signals where signal != .hangUp { stop.value = true }
        }
        defer {
            signals.stop()
            listener.cancel()
        }
        let outcome = try await context.withExistingStore(for: .changing) { store in
            let outcome = try await rotate(store: store, vault: vault, until: stop, in: context, printingTo: output)
            for key in outcome?.removable ?? [] {
                try await vault.ring.current.remove(
                    key,
                    from: context.configuration.keyFile,
                    wrapping: context.keyWrapping,
                    in: store
                )
            }
            return outcome
        }
        guard let outcome else {
            throw CommandError(
                .leftForLater,
                "stopped; completed steps are kept. Run refresh-worker keys rotate again: it continues from here"
            )
        }
        output.answer(outcome.lines.joined(separator: "\n"), json: outcome.write)
        outcome.warnings.forEach { Output.error.line($0) }
        guard outcome.remainingTokens == 0 else { throw CommandError(remaining: outcome) }
        return .success
    }

    private static func rotate(
        store: any Store,
        vault: TokenVault,
        until stop: Shared<Bool>,
        in context: CommandContext,
        printingTo output: CommandOutput
    ) async throws -> KeyRotation.Outcome? {
        let heartbeat = WorkerHeartbeat(of: context, in: store, vault: vault)
        let progress = TerminalProgress()
        let rotation = KeyRotation(
            keyFile: context.configuration.keyFile,
            wrapping: context.keyWrapping,
            store: store,
            vault: vault,
            heartbeat: heartbeat,
            time: context.time,
            pause: { [time = context.time] in try await time.sleep(for: $0) },
            isStopping: { stop.value },
            reportProgress: { event in
                if event.isPassing {
                    progress.show(event.sentence)
                } else {
                    progress.clear()
                    (output.isJSON ? Output.error : Output.standard).line(event.sentence)
                }
            }
        )
        do {
            let outcome = try await rotation.run()
            progress.clear()
            await heartbeat.leave()
            return outcome
        } catch {
            progress.clear()
            await heartbeat.leave()
            throw error
        }
    }
}
