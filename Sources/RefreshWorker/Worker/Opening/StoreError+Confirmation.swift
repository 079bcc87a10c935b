import Dispatch
import Storage

extension StoreError {
    /// The error to end with.
    ///
    /// Damage that one read of a file has reported is checked by a second read.
    var confirmed: StoreError {
        get async {
            guard suspectedFile != nil else { return self }
            return await withCheckedContinuation { continuation in
                // On a thread of its own: for a large file this takes minutes.
                DispatchQueue(label: "refresh-worker.second-read").async {
                    continuation.resume(returning: SQLiteStore.confirmed(self))
                }
            }
        }
    }
}
