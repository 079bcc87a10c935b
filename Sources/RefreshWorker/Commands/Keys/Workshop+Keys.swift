private import Glibc
import Secrets
import Store

/// `keys generate`, `keys list` and `keys retire`.
extension Workshop {
    func generateKeys() async throws -> ExitCode {
        let path = configuration.keyFile
        let id: KeyID
        do {
            id = try await BlockingQueue.files.run { try KeyRingFile.generate(path: path) }
        } catch let error as KeyRingFileError {
            throw CommandFailure(notGenerated: error)
        }
        Output.standard.line(
            """
            made the key ring \(path) with one key, \(id)
            Back this file up now, in a safe place apart from copies of the database: without it no stored token can \
            be opened, and every user must sign in again.
            """
        )
        return .success
    }

    func listKeys() async throws -> ExitCode {
        let roster = KeyRoster(try openVault().ring.current)
        guard let store = try await openStoreIfThere(for: .reading) else {
            let listing = KeyListing(roster: roster, keysInUse: nil)
            listing.lines.forEach { Output.standard.line($0) }
            Output.error.line("there is no database \(configuration.database) yet, so nothing is sealed")
            return .success
        }
        let listing = try await Self.using(store) {
            KeyListing(roster: roster, keysInUse: try await store.keysInUse())
        }
        listing.lines.forEach { Output.standard.line($0) }
        listing.warnings.forEach { Output.error.line($0) }
        return .success
    }

    func retireKey(_ text: String) async throws -> ExitCode {
        guard let id = KeyID(text) else {
            throw CommandFailure(
                .badData,
                "\(DisplayedText(text)) is no key id: refresh-worker keys list shows the eight digits of each"
            )
        }
        let vault = try openVault()
        let refusal = try await withExistingStore(for: .changing) { store in
            KeyRetirement.refusal(
                of: id,
                roster: KeyRoster(vault.ring.current),
                keysInUse: try await store.keysInUse(),
                workers: try await store.liveWorkers()
            )
        }
        if let refusal { throw refusal }
        let path = configuration.keyFile
        try await BlockingQueue.files.run { try KeyRingFile.remove(id, path: path) }
        Output.standard.line(
            """
            took key \(id) out of \(path)
            Backups of the database from before the last rotation still need it: keep a backup of the key ring that \
            holds it as long as those.
            """
        )
        return .success
    }
}

extension CommandFailure {
    /// A key ring that could not be made is a file that could not be created, unless the disk is at fault.
    fileprivate init(notGenerated error: KeyRingFileError) {
        switch error.reason {
        case .folderMissing:
            let folder = FileFacts.folder(of: error.path)
            self.init(.cannotCreate, "\(error): run: mkdir -p \(folder)")
        case .system(let failure) where failure.code == ENOSPC || failure.code == EDQUOT || failure.code == EIO:
            self.init(.inputOutput, "\(error)")
        case .sealing:
            self.init(.internalFailure, "\(error)")
        default:
            self.init(.cannotCreate, "\(error)")
        }
    }
}
