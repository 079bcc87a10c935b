package import Crypto

/// What a snapshot shows beside the content of the database: settings, and files whose formats only the program knows.
package protocol InstallationFacts: Sendable {
    /// The configured client ids of this moment, which a reload can change.
    var clientIDs: [String] { get }
    /// The configured limit of requests a second, which a reload can change.
    var maxRate: Double { get }
    var deliversNotices: Bool { get }
    var receivesSecurityEvents: Bool { get }

    /// Reads the key ring's file.
    func readKeyRing() throws -> KeyRing

    /// Looks at the database from outside. Those facts of a server that need a connection of their own are asked for
    /// only if `asksServer`.
    func databaseFacts(asksServer: Bool) async throws -> DatabaseFacts

    /// Returns the files of results that the database has not stored, or `nil` if they cannot be listed.
    func spilledFiles() async -> [SpilledFile]?

    /// Returns the backups of a timer of this machine, or `nil` without one.
    func nightlyBackups() async throws -> NightlyBackups?
}
