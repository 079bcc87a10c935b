import Crypto
import Storage

extension KeyRing {
    /// Removes an unneeded key from the list in the database, then from the ring's file.
    ///
    /// In this order, a worker that reads the file in between finds more keys than it needs, not fewer.
    func remove(
        _ id: KeyID,
        from path: String,
        wrapping: (any KeyRingWrapping)?,
        in store: any Store
    ) async throws {
        try await store.removeRecordedKeys([id], with: self)
        try await BlockingCallQueue.files.run { try KeyRingFile.remove(id, path: path, wrapping: wrapping) }
    }
}
