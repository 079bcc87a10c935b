import AccountClient
import Foundation

/// One start of an app whose tokens outlive it.
struct StoredSession {
    /// The action of the app in this start.
    enum Action: String, CaseIterable {
        case signIn = "sign-in"
        case call
        case refresh
        case logOut = "log-out"
        case deleteAccount = "delete-account"
    }

    private let client: AccountClient

    init(baseURL: URL, folder: URL) throws {
        client = try AccountClient(baseURL: baseURL, tokens: try FileTokenStore(folder: folder))
    }

    func run(_ action: Action) async throws {
        switch action {
        case .signIn:
            try await client.signIn(googleAccessToken: try AccountExample.readGoogleAccessToken())
            AccountExample.say("signed in")
        case .call:
            let user = try await client.fetchCurrentUser()
            AccountExample.say("the backend knows user \(user.id)")
        case .refresh:
            try await client.forceRefresh()
            AccountExample.say("refreshed")
        case .deleteAccount:
            try await client.deleteAccount()
            AccountExample.say("deleted")
        case .logOut:
            let isConfirmed = try await client.logout()
            AccountExample.say(isConfirmed ? "logged out" : "logged out here; the server did not confirm")
        }
    }
}

/// A token store that outlives the process: each token in a file of its own, which only its owner can read.
struct FileTokenStore: TokenStore {
    private let folder: URL

    /// Uses a folder, which is created if it does not exist.
    init(folder: URL) throws {
        self.folder = folder
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    func load(_ key: TokenKey) throws -> String? {
        do {
            return try String(contentsOf: file(key), encoding: .utf8)
        } catch CocoaError.fileReadNoSuchFile {
            return nil
        }
    }

    /// Writes a new file and renames it, so that a killed process leaves the former token or the new one.
    func save(_ token: String, for key: TokenKey) throws {
        let new = file(key).appendingPathExtension("new")
        let descriptor = try check(open(new.path, O_CREAT | O_WRONLY | O_TRUNC, 0o600))
        defer { close(descriptor) }
        let bytes = Array(token.utf8)
        guard try check(write(descriptor, bytes, bytes.count)) == bytes.count else { throw POSIXError(.EIO) }
        _ = try check(fsync(descriptor))
        _ = try check(rename(new.path, file(key).path))
        try flush()
    }

    func remove(_ key: TokenKey) throws {
        guard unlink(file(key).path) != 0 else { return try flush() }
        if errno != ENOENT { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
    }

    /// Runs the body under a lock that the system releases when the process ends.
    func exclusively<Value>(_ body: () throws -> Value) throws -> Value {
        let descriptor = try check(open(folder.appendingPathComponent("lock").path, O_CREAT | O_RDWR, 0o600))
        defer { close(descriptor) }
        _ = try check(flock(descriptor, LOCK_EX))
        return try body()
    }

    /// Makes renamed and removed files durable.
    private func flush() throws {
        let descriptor = try check(open(folder.path, O_RDONLY))
        defer { close(descriptor) }
        _ = try check(fsync(descriptor))
    }

    private func file(_ key: TokenKey) -> URL { folder.appendingPathComponent(key.rawValue) }

    private func check<Result: SignedInteger>(_ result: Result) throws -> Result {
        guard result >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        return result
    }
}
