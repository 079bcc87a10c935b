import Foundation
import Storage
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import RefreshWorker

@Suite("A key ring that a command opens", .timeLimit(.minutes(10)))
struct CommandedKeyRingTests {
    /// A reversible, visible change of the text, in place of an encryption. The runs are counted in a file.
    private static func flags(_ fixture: OperatorFixture) -> [(Setting.Name, String)] {
        [
            (.keyCommand, "sh -c 'echo run >>\(fixture.path("runs")); test ! -e \(fixture.path("away")) && rev'"),
            (.keyWrapCommand, "rev"),
        ]
    }

    private static func runs(_ fixture: OperatorFixture) throws -> Int {
        guard fixture.exists("runs") else { return 0 }
        return try String(contentsOfFile: fixture.path("runs"), encoding: .utf8).split(separator: "\n").count
    }

    private static func context(_ fixture: OperatorFixture) throws -> CommandContext {
        try fixture.context(flags(fixture), environment: ["PATH": "/usr/bin:/bin"])
    }

    @Test("is made, changed and rotated in its wrapped form, and no key is in the file in plain text")
    func commands() async throws {
        try await OperatorFixture.with { fixture in
            let context = try Self.context(fixture)
            #expect(try await context.run(["keys", "generate"]) == .success)
            let first = try context.openVault().ring.current.sealingKeyID
            #expect(throws: FileError.self, "it is not plain") { try KeyRingFile.load(path: fixture.keyFile) }
            let store = try fixture.openStore()
            try await fixture.insert(1...3, sealedBy: try context.openVault(), into: store)
            await store.close()

            #expect(try await context.run(["keys", "rotate"]) == .success)
            #expect(try await context.run(["keys", "add-binding"]) == .success)
            #expect(try await context.run(["keys", "retire", "\(first)"]) == .success)
            let ring = try Self.context(fixture).openVault().ring.current
            #expect(ring.keys.count == 3)
            #expect(ring.sealingKeyID != first)
            #expect(ring.bindingKey != nil)
            #expect(throws: FileError.self) { try KeyRingFile.load(path: fixture.keyFile) }
            #expect(try !KeyRingFile.isPlain(path: fixture.keyFile))

            let reopened = try fixture.openStore()
            let grant = try #require(try await reopened.grant(GrantID(rawValue: 2)))
            let vault = try Self.context(fixture).openVault()
            #expect(try vault.openRefreshToken(of: grant) == Secret("refresh 2"))
            await reopened.close()
        }
    }

    @Test("is not run for each use, and runs again for another file and after a reload")
    func cached() async throws {
        try await OperatorFixture.with { fixture in
            let context = try Self.context(fixture)
            _ = try await context.run(["keys", "generate"])
            let before = try Self.runs(fixture)
            let vault = try context.openVault()
            for _ in 0..<3 {
                _ = try context.openVault()
                #expect(try vault.ring.reload() == nil)
            }
            #expect(try Self.runs(fixture) == before + 1)
            let commanded = try #require(context.commandedKeyRing)
            commanded.update()
            #expect(try Self.runs(fixture) == before + 1, "the file is the same")
            commanded.request()
            commanded.update()
            commanded.update()
            #expect(try Self.runs(fixture) == before + 2, "once for the request")
            _ = try await Self.context(fixture).run(["keys", "add-binding"])
            let changed = try Self.runs(fixture)
            commanded.update()
            #expect(try Self.runs(fixture) == changed + 1, "the file is another one")
            #expect(try vault.ring.reload() == nil)
            #expect(vault.ring.current.bindingKey != nil)
        }
    }

    @Test("stays in use while the command fails, with an alarm, and the command is tried again")
    func failing() async throws {
        try await OperatorFixture.with { fixture in
            let context = try Self.context(fixture)
            _ = try await context.run(["keys", "generate"])
            let commanded = try #require(context.commandedKeyRing)
            let worker = try await HeartbeatWorker(fixture, vault: try context.openVault())
            try await worker.report()
            #expect(worker.currentAlarms == [])

            try fixture.write("", to: "away")
            commanded.request()
            commanded.update()
            try await worker.report()
            #expect(worker.currentAlarms == [.keyFileUnreadable])
            let problem = try #require(worker.vault.ring.fileProblem)
            #expect(problem.contains("--key-command: 'sh' ended with exit code 1"))
            #expect(problem.contains("a restart would fail"))
            #expect(worker.vault.ring.isComplete)

            try FileManager.default.removeItem(atPath: fixture.path("away"))
            commanded.update()
            try await worker.report()
            #expect(worker.currentAlarms == [.keyFileUnreadable], "it waits before it tries again")
            fixture.time.advance(by: .seconds(10))
            commanded.update()
            try await worker.report()
            #expect(worker.currentAlarms == [])
            #expect(worker.vault.ring.fileProblem == nil)
            await worker.store.close()
        }
    }

    @Test("looks after its file every five seconds")
    func repeated() async throws {
        try await OperatorFixture.with { fixture in
            let context = try Self.context(fixture)
            _ = try await context.run(["keys", "generate"])
            let commanded = try #require(context.commandedKeyRing)
            _ = try commanded.latest()
            let ring = try context.openVault().ring
            let running = Task { await commanded.updateRepeatedly(for: ring) }
            await fixture.time.sleepers(atLeast: 1, for: .seconds(5))
            let before = try Self.runs(fixture)
            commanded.request()
            fixture.time.advance(by: .seconds(5))
            await fixture.time.sleepers(atLeast: 1, for: .seconds(5))
            #expect(try Self.runs(fixture) == before + 1)
            // Another worker seals with a key that the program did not print.
            ring.standbyReason = "lacks a key"
            fixture.time.advance(by: KeyCommandSchedule.firstPause)
            await fixture.time.sleepers(atLeast: 1, for: .seconds(5))
            #expect(try Self.runs(fixture) == before + 2)
            ring.standbyReason = nil
            ring.rejection = "is another ring"
            fixture.time.advance(by: KeyCommandSchedule.maximumPause)
            await fixture.time.sleepers(atLeast: 1, for: .seconds(5))
            #expect(try Self.runs(fixture) == before + 3)
            ring.rejection = nil
            fixture.time.advance(by: KeyCommandSchedule.maximumPause)
            await fixture.time.sleepers(atLeast: 1, for: .seconds(5))
            #expect(try Self.runs(fixture) == before + 3)
            running.cancel()
            await running.value
        }
    }

    @Test("is not changed if only the command that reads it is set")
    func readOnly() async throws {
        try await OperatorFixture.with { fixture in
            let id = try KeyRingFile.generate(path: fixture.keyFile)
            let context = try fixture.context([(.keyCommand, "cat")], environment: ["PATH": "/bin"])
            #expect(try context.openVault().ring.current.sealingKeyID == id)
            let error = await #expect(throws: FileError.self) { _ = try await context.run(["keys", "add-binding"]) }
            #expect(error?.description.contains("--key-wrap-command is not set") == true)
            #expect(try KeyRingFile.load(path: fixture.keyFile).keyIDs == [id])
        }
    }

    @Test("needs no file if the command needs none")
    func withoutFile() async throws {
        try await OperatorFixture.with { fixture in
            let id = try KeyRingFile.generate(path: fixture.path("elsewhere"))
            let flags: [(Setting.Name, String)] = [(.keyCommand, "base64 -w 0 \(fixture.path("elsewhere"))")]
            let context = try fixture.context(flags, environment: ["PATH": "/usr/bin:/bin"])
            #expect(try context.openVault().ring.current.sealingKeyID == id)
        }
    }

    @Test("is checked by doctor in both directions")
    func doctor() async throws {
        try await OperatorFixture.with { fixture in
            let context = try Self.context(fixture)
            _ = try await context.run(["keys", "generate"])
            let checks = Doctor(context: context)
            #expect(checks.keyCommand?.severity == .ok)
            #expect(checks.keyWrapCommand?.severity == .ok)
            #expect(checks.keyWrapCommand?.finding == "what rev prints opens to the same key ring")

            let flags: [(Setting.Name, String)] = [(.keyCommand, "rev"), (.keyWrapCommand, "false")]
            let failing = Doctor(context: try fixture.context(flags, environment: ["PATH": "/usr/bin:/bin"]))
            #expect(failing.keyWrapCommand?.severity == .fault)
            let reason = "--key-wrap-command: 'false' ended with exit code 1"
            #expect(failing.keyWrapCommand?.finding.contains(reason) == true)

            let plain = try KeyRingFile.generate(path: fixture.path("plain"))
            let given: [(Setting.Name, String)] = [(.keyFile, fixture.path("plain")), (.keyCommand, "cat")]
            let careless = Doctor(context: try fixture.context(given, environment: ["PATH": "/bin"]))
            #expect(careless.keyCommand?.severity == .warning)
            #expect(careless.keyCommand?.finding.contains("in plain text") == true)
            #expect(careless.fileChecks().first { $0.name == "key ring" }?.finding.contains("\(plain) seals") == true)

            let absent: [(Setting.Name, String)] = [(.keyCommand, "/nonexistent/unwrap")]
            let missing = Doctor(context: try fixture.context(absent))
            let check = missing.fileChecks().first { $0.name == "key ring" }
            #expect(check?.severity == .fault)
            #expect(check?.finding.contains("'/nonexistent/unwrap' does not exist") == true)
        }
    }
}

@Suite("A start whose key command fails", .timeLimit(.minutes(10)))
struct KeyCommandWaitTests {
    @Test("waits, tells systemd why, and goes on when the command works")
    func waits() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let script = "sh -c 'test -e \(fixture.path("up")) || { echo no route >&2; exit 7; }; cat'"
            let context = try fixture.context([(.keyCommand, script)], environment: ["PATH": "/usr/bin:/bin"])
            let systemd = try DatagramListener(isAbstract: true)
            let notifier = SystemdNotifier(environment: ["NOTIFY_SOCKET": systemd.address], processID: 1)
            let opened = Task { try await KeyCommandWait(context, notifier: notifier).run { try context.openVault() } }
            for _ in 0..<2 {
                await fixture.time.sleepers(atLeast: 1)
                let message = try systemd.receive()
                #expect(message.hasPrefix("EXTEND_TIMEOUT_USEC=60000000\nSTATUS=waiting: --key-command: 'sh' ended"))
                #expect(message.contains("it wrote: no route"))
                fixture.time.advance(by: .seconds(20))
            }
            await fixture.time.sleepers(atLeast: 1)
            try fixture.write("", to: "up")
            fixture.time.advance(by: .seconds(20))
            #expect(try await opened.value.ring.current.keys.count == 1)
        }
    }

    @Test("ends if only a person can repair it", arguments: ["/nonexistent/unwrap", "echo no key ring"])
    func ends(command: String) async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context([(.keyCommand, command)], environment: ["PATH": "/usr/bin:/bin"])
            let notifier = SystemdNotifier(environment: [:], processID: 1)
            let error = await #expect(throws: FileError.self) {
                try await KeyCommandWait(context, notifier: notifier).run { try context.openVault() }
            }
            #expect(error?.kind == .unfit)
            #expect(CommandError(try #require(error)).exitCode == .configuration)
        }
    }

    @Test("is not the case for a command of an operator, which ends with 74")
    func operatorCommand() async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context([(.keyCommand, "false")], environment: ["PATH": "/usr/bin:/bin"])
            let error = await #expect(throws: FileError.self) { _ = try await context.run(["keys", "list"]) }
            #expect(CommandError(try #require(error)).exitCode == .inputOutput)
        }
    }
}
