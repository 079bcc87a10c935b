import Clocks
import Foundation
import PostgresStore
import Secrets
import Store

/// The PostgreSQL server that `scripts/test` starts: each test has a database of its own.
enum PostgresServer {
    static let variable = "REFRESH_WORKER_TEST_DATABASE"

    /// The URL of the server's database `postgres`, where there is a server.
    static let url = ProcessInfo.processInfo.environment[variable]

    /// Runs `body` with the URL of a new, empty database, which goes afterwards.
    static func withDatabase<Result>(_ body: (Secret) async throws -> Result) async throws -> Result {
        let url = try url.orThrow("\(variable) is not set")
        let name = "test_" + UUID().uuidString.replacing("-", with: "").lowercased()
        try await run("CREATE DATABASE \(name)", on: url)
        let result: Result
        do {
            result = try await body(Secret(url.replacing("/postgres?", with: "/\(name)?")))
        } catch {
            try await run("DROP DATABASE \(name) WITH (FORCE)", on: url)
            throw error
        }
        try await run("DROP DATABASE \(name) WITH (FORCE)", on: url)
        return result
    }

    /// Runs SQL as its administrator would, and answers what `psql` prints.
    @discardableResult
    static func run(_ statement: String, on url: String) async throws -> String {
        try await ChildProcess.run(
            ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]
                + ["--command=\(statement)", url]
        )
    }
}

extension Optional {
    fileprivate func orThrow(_ message: String) throws -> Wrapped {
        guard let self else { throw StoreError(.fault, message) }
        return self
    }
}

/// A program that runs to its end beside the test.
enum ChildProcess {
    static func run(_ words: [String]) async throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
                process.waitUntilExit()
                if process.terminationStatus == 0 {
                    continuation.resume(returning: text)
                } else {
                    continuation.resume(throwing: StoreError(.fault, "\(words.joined(separator: " ")): \(text)"))
                }
            }
        }
    }
}
