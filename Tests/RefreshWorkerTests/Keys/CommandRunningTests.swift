import Base
import Crypto
import Foundation
import Glibc
import TestSupport
import Testing

@testable import RefreshWorker

@Suite("Running a program that prints a secret", .timeLimit(.minutes(10)))
struct CommandRunningTests {
    private static let environment = ["PATH": "/usr/bin:/bin"]

    /// Runs on a thread of its own: a program that is waited for must not hold one of all async tests.
    private static func run(
        _ script: String,
        reading input: Secret? = nil,
        environment: [String: String] = environment,
        limits: ExternalCommand.Limits = ExternalCommand.Limits()
    ) async throws -> String {
        let quoted = script.contains("'") ? "\"\(script)\"" : "'\(script)'"
        let command = try ExternalCommand("/bin/sh -c \(quoted)")
        return try await BlockingCallQueue(label: "test.command").run {
            try command.run(reading: input, environment: environment, limits: limits).reveal()
        }
    }

    private static func failure(
        _ script: String,
        limits: ExternalCommand.Limits = ExternalCommand.Limits()
    ) async throws -> ExternalCommandError {
        try await #require(throws: ExternalCommandError.self) { _ = try await run(script, limits: limits) }
    }

    @Test("returns what it prints, exactly")
    func output() async throws {
        #expect(try await Self.run("printf \"a\\nb\"; echo") == "a\nb\n")
        let large = try await Self.run("head -c 100000 /dev/zero | tr \"\\0\" x")
        #expect(large == String(repeating: "x", count: 100_000))
    }

    @Test("gives it the input, also more than a pipe holds, and no input otherwise")
    func input() async throws {
        let text = String(repeating: "key ring\n", count: 20_000)
        let output = try ExternalCommand("tail -c 18").run(reading: Secret(text), environment: Self.environment)
        #expect(output.reveal() == "key ring\nkey ring\n")
        #expect(try await Self.run("cat; readlink /proc/self/fd/0") == "/dev/null\n")
        #expect(try await Self.run("cat /dev/stdin; echo", reading: Secret("by name")) == "by name\n")
    }

    @Test("gives it only the variables that it was told, and no descriptor of the worker")
    func inheritance() async throws {
        let variables = try await Self.run("env", environment: ["A": "1", "B": "two words"]).split(separator: "\n")
        // The shell adds the last two.
        #expect(variables.filter { !$0.hasPrefix("PWD=") && !$0.hasPrefix("_=") }.sorted() == ["A=1", "B=two words"])
        let descriptors = try await Self.run("ls /proc/self/fd").split(separator: "\n")
        // ls itself opens the folder.
        #expect(descriptors == ["0", "1", "2", "3"])
    }

    @Test("gives it a session of its own, without a terminal, and no blocked or ignored signal")
    func session() async throws {
        let lines = try await Self.run("ps -o sid= -p $$ | tr -d \" \"; echo $$").split(separator: "\n")
        #expect(lines[0] == lines[1], "it leads its session")
        // posix_spawn of the C library ignores its own two signals, 32 and 33.
        let ofLibrary: UInt64 = 0x1_8000_0000
        for line in try await Self.run("grep -E \"^Sig(Blk|Ign)\" /proc/self/status").split(separator: "\n") {
            let mask = try #require(UInt64(line.suffix(16), radix: 16))
            #expect(mask & ~ofLibrary == 0, "\(line)")
        }
    }

    @Test("reports its exit code, and what it wrote")
    func exitCode() async throws {
        let error = try await Self.failure("echo AccessDenied >&2; echo half; exit 254")
        #expect(error.reason == .exited(code: 254))
        #expect(error.mayPass)
        #expect(error.description == "'/bin/sh' ended with exit code 254; it wrote: AccessDenied")
    }

    @Test("reports its signal")
    func signal() async throws {
        let error = try await Self.failure("kill -SEGV $$")
        #expect(error.reason == .killed(signal: 11))
        #expect(error.description == "'/bin/sh' was ended by signal 11")
    }

    @Test("reports an empty output")
    func noOutput() async throws {
        #expect(try await Self.failure("echo only a warning >&2").reason == .noOutput)
    }

    @Test("ends it if it prints too much, however long it would go on")
    func tooMuch() async throws {
        let error = try await Self.failure("yes", limits: ExternalCommand.Limits(output: 1000))
        #expect(error.reason == .tooMuchOutput(limit: 1000))
        #expect(!error.mayPass)
        let most = try await Self.run("head -c 1000 /dev/zero", limits: ExternalCommand.Limits(output: 1000))
        #expect(most.utf8.count == 1000)
    }

    @Test("ends it at the deadline although it never stops writing errors, as soon as one that is quiet")
    func endlessErrors() async throws {
        let limits = ExternalCommand.Limits(time: .milliseconds(300))
        let time = SystemTime()
        var spans: [Duration] = []
        for script in ["exec sleep 1000", "exec dd if=/dev/zero bs=64k >&2 2>/dev/null"] {
            let start = time.sinceBoot
            let error = try await Self.failure(script, limits: limits)
            spans.append(time.sinceBoot - start)
            #expect(error.reason == .tooSlow(limit: .milliseconds(300)))
        }
        // Read to its end, which never comes, the second one took thirty times as long.
        #expect(spans[1] < spans[0] * 10)
    }

    @Test("ends it and its children at the deadline")
    func deadline() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "command-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let limits = ExternalCommand.Limits(time: .milliseconds(300))
        let error = try await Self.failure("sleep 1000 & echo $! >\(folder)/child; sleep 1000", limits: limits)
        #expect(error.reason == .tooSlow(limit: .milliseconds(300)))
        #expect(error.description == "'/bin/sh' did not end within 300 ms, and was killed")
        try await Self.waitForEnd(of: try String(contentsOfFile: folder + "/child", encoding: .utf8))
    }

    @Test("ends the children that it leaves behind, and does not wait for their output")
    func orphans() async throws {
        let child = try await Self.run("sleep 1000 & echo $!")
        try await Self.waitForEnd(of: child)
    }

    /// Waits until a process is gone or a zombie, which nobody might reap here.
    private static func waitForEnd(of process: String) async throws {
        let path = "/proc/\(process.trimmingCharacters(in: .whitespacesAndNewlines))/stat"
        try await poll {
            guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return true }
            return text.split(separator: " ").dropFirst(2).first == "Z"
        }
    }

    @Test(
        "says what is wrong with the program itself",
        arguments: [
            ("/nonexistent/program", "does not exist"), ("no-such-program-anywhere", "is not in PATH"),
            ("/etc/passwd", "cannot be run by user"),
        ]
    )
    func missing(program: String, reason: String) async throws {
        let error = try #require(throws: ExternalCommandError.self) {
            _ = try ExternalCommand(program).run(reading: nil, environment: Self.environment)
        }
        #expect(error.description.contains(reason))
        #expect(!error.mayPass)
    }

    /// In a process of its own: other tests open files meanwhile.
    @Test("leaves no descriptor and no process behind")
    func cleanUp() async {
        await #expect(processExitsWith: .success) {
            _ = try await CommandRunningTests.run("echo warm up")
            let before = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            for _ in 0..<30 { _ = try await CommandRunningTests.run("echo x", reading: Secret("y")) }
            let after = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            #expect(after == before)
            // There is no child to wait for.
            #expect(waitpid(-1, nil, WNOHANG) == -1)
        }
    }
}

@Suite("The error output of a program")
struct ShownErrorOutputTests {
    @Test("becomes one line without control characters")
    func line() {
        let text = "An error occurred\r\n\n  (AccessDenied)\tat \u{1b}[31mKMS\u{202e}\n"
        let shown = ShownErrorOutput.text(of: Array(text.utf8))
        #expect(shown == "An error occurred (AccessDenied) at \\u{1b}[31mKMS\\u{202e}")
    }

    @Test("does not show what could be a key, and shows the ids of keys")
    func keys() {
        let key = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA="
        let hexadecimal = String(repeating: "0123abcd", count: 8)
        let shown = ShownErrorOutput.text(of: Array("+ echo 9f86d081 \(key) \(hexadecimal)'x".utf8))
        #expect(shown == "+ echo 9f86d081 (hidden) (hidden)'x")
        // Base64 is often printed in lines, and the last one is short.
        let lines = ShownErrorOutput.text(of: Array("\(key)\nq83vEjRWeJCrze8S\nfailed".utf8))
        #expect(lines == "(hidden) (hidden) failed")
        let arn = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
        #expect(ShownErrorOutput.text(of: Array(arn.utf8)) == arn)
    }

    @Test("is cut at its beginning, because the reason comes last")
    func length() {
        let text = ShownErrorOutput.text(of: Array((String(repeating: "a frame ", count: 5000) + "the reason").utf8))
        #expect(text.count == 300)
        #expect(text.hasPrefix("…"))
        #expect(text.hasSuffix("the reason"))
    }
}

@Suite("The environment of a program")
struct CommandEnvironmentTests {
    @Test("has the variables of the KMS and none of the worker's own")
    func variables() {
        let passed = [
            "PATH": "/bin", "HOME": "/root", "AWS_REGION": "eu-central-1", "VAULT_ADDR": "https://vault",
            "CREDENTIALS_DIRECTORY": "/run/credentials/refresh-worker.service", "HTTPS_PROXY": "http://proxy",
        ]
        let own = [
            "REFRESH_WORKER_DATABASE": "postgres://worker:secret@host/db", "JWT_SECRET": "secret",
            "PGPASSWORD": "secret",
            "NOTIFY_SOCKET": "/run/systemd/notify", "WATCHDOG_USEC": "1", "LISTEN_FDS": "1",
        ]
        #expect(CommandEnvironment.variables(from: passed.merging(own) { $1 }) == passed)
    }

    @Test("has the home of the user as whom root continues")
    func home() {
        let variables = CommandEnvironment.variables(from: ["HOME": "/root"], home: "/var/lib/refresh-worker")
        #expect(variables == ["HOME": "/var/lib/refresh-worker"])
    }
}
