import Base
import Crypto
import Status
import Storage
import Telemetry

/// The settings and the files of this installation, for the status.
struct ConfiguredInstallation: InstallationFacts {
    private let context: CommandContext

    init(_ context: CommandContext) {
        self.context = context
    }

    private var configuration: Configuration { context.configuration }

    var clientIDs: [String] { configuration.allClientIDs }
    var maxRate: Double { configuration.maxRate }
    var deliversNotices: Bool { configuration.noticeURL != nil }
    var receivesSecurityEvents: Bool { configuration.publicListener != nil }

    func readKeyRing() throws -> KeyRing { try context.openVault().ring.current }

    func databaseFacts(asksServer: Bool) async throws -> DatabaseFacts {
        var facts = DatabaseFacts(location: configuration.database.description)
        switch configuration.database {
        case .file(let path):
            facts.bytes = try FileStatus.of(path)?.size ?? 0
            facts.freeSpace = try Folder.freeSpace(in: path.parentFolder)
        case .server(let address):
            guard asksServer else { break }
            let server = try await ServerFacts.read(address, time: context.time)
            (facts.bytes, facts.schema) = (server.bytes, server.schema)
        }
        return facts
    }

    func spilledFiles() async -> [SpilledFile]? {
        let location = context.spillLocation(of: configuration.database)
        do {
            return try await BlockingCallQueue.files.run { try SpilledFile.list(in: location) }
        } catch {
            context.diagnostics.warning(
                "the spill files cannot be listed",
                ["folder": location.folder, "error": "\(error)"]
            )
            return nil
        }
    }

    func nightlyBackups() async throws -> NightlyBackups? {
        // Another configuration can be that of another installation.
        guard let file = configuration.configurationFile, Installation.isFile(file) else { return nil }
        return await BlockingCallQueue.files.run { NightlyBackups.find() }
    }
}

extension CommandContext {
    /// Returns the status of this installation, with an open store.
    func status(from store: any Store) -> InstallationStatus {
        InstallationStatus(
            store: store,
            installation: ConfiguredInstallation(self),
            time: time,
            diagnostics: diagnostics
        )
    }
}
