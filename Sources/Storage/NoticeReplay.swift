/// The limits of ``AccountStore/replayNotices(since:ofUser:at:)``.
package enum NoticeReplay {
    /// The number of finished notices (accepted or given up) that one transaction reads; it replays the notices of
    /// their users.
    package static let batchSize = 500

    /// Returns each user once; ids are compared by their bytes, as the databases do.
    package static func distinct(_ users: [String]) -> [String] {
        var unique: Set<[UInt8]> = []
        return users.filter { unique.insert(Array($0.utf8)).inserted }
    }
}
