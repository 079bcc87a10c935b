import Foundation
import Storage
import TestSupport

@testable import Base
@testable import Crypto
@testable import Records
@testable import RefreshWorker

/// The dependencies of an import: a database file, a key ring and clocks, removed with the object.
final class ImportFixture {
    let folder: String
    let store: SQLiteStore
    let vault: TokenVault
    let time = ManualTime()
    var reports: [String] = []
    var clientIDs = ["123-abc.apps.googleusercontent.com"]

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("grants-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        store = try SQLiteStore(path: folder + "/grants.sqlite", timeSource: time)
        let ring = try KeyRing(keys: [.random(), RingKey.binding.get()])
        vault = TokenVault(ring: try ReloadableKeyRing { ring })
    }

    deinit {
        do {
            try FileManager.default.removeItem(atPath: folder)
        } catch {
            print("the test's folder \(folder) stays: \(error)")
        }
    }

    func writer(_ existing: ImportedGrantWriter.Existing, refreshesAtOnce: Bool = false) -> ImportedGrantWriter {
        ImportedGrantWriter(
            store: store,
            vault: vault,
            time: time,
            random: SystemRandom(),
            existing: existing,
            refreshesAtOnce: refreshesAtOnce,
            recordsDates: true
        )
    }

    /// Imports a text in pieces of a given number of bytes.
    @discardableResult
    func importText(
        _ text: String,
        replace: Bool = false,
        pieces: Int = 4096,
        writer: ImportedGrantWriter? = nil
    ) async throws -> ImportTally {
        reports = []
        var grants = GrantImport(
            clientIDs: clientIDs,
            writer: writer ?? self.writer(replace ? .replace : .keep),
            time: time,
            report: { self.reports.append($0) }
        )
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            try await grants.feed(Array(rest.prefix(pieces)))
            rest = rest.dropFirst(pieces)
        }
        try await grants.finish()
        return grants.tally
    }

    func grant(_ user: String) async throws -> Grant {
        guard let grant = try await store.grant(ofUser: user) else { throw Missing(user: user) }
        return grant
    }

    func refreshToken(_ user: String) async throws -> String? {
        try vault.openRefreshToken(of: try await grant(user))?.reveal()
    }

    func export() async throws -> String {
        var text = ""
        for try await page in GrantPages(store: store, state: nil, size: 3) {
            let exported = ExportedPage(page, opening: vault)
            reports += exported.problems
            text += exported.text
        }
        return text
    }

    struct Missing: Error {
        let user: String
    }
}

/// Returns a line of an import.
///
/// `changes` replace the default members; `nil` removes one.
func line(_ user: String, _ changes: [String: (any Sendable)?] = [:]) throws -> String {
    // A token can contain only these characters of the user's name.
    let name = String(user.unicodeScalars.filter { $0.isASCII && $0.properties.isAlphabetic }.prefix(20))
    var members: [String: any Sendable] = [
        "user_id": user, "access_token": "ya29.access-\(name)", "refresh_token": "1//refresh-\(name)",
        "expires_in": 3600, "scope": "openid email", "google_email": "\(name)@example.com",
    ]
    for (name, value) in changes { members[name] = value }
    return String(decoding: try JSONSerialization.data(withJSONObject: members), as: UTF8.self)
}

extension RingKey {
    /// The binding key of every fixture.
    static let binding = Result {
        try RingKey(id: KeyID.named("0000000b"), binding: Secret(utf8: [UInt8](repeating: 1, count: 32)), role: .active)
    }
}
