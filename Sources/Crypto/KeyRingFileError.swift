/// An error in a key ring's file: the place and the fix.
///
/// It never quotes the file.
package struct KeyRingFileError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: Hashable, Sendable {
        case missing
        case folderMissing
        case alreadyExists
        case notAllowed
        case notRegular
        /// Users other than its owner may read or write it; the value is its permission bits.
        case openToOthers(mode: UInt32)
        case foreignOwner(owner: UInt32, user: UInt32)
        case tooLarge(limit: Int)
        /// A line that does not have the expected form, which the text describes.
        case malformedLine(String)
        case duplicateKey(KeyID)
        case noSealingKey
        case unknownKey(KeyID)
        /// The key cannot be removed because it is the one that seals.
        case sealingKey(KeyID)
        case system(SystemCallError)
        case sealing(SealError)
    }

    package let path: String
    /// The faulty line, counted from 1, if the error is in a line.
    package let line: Int?
    package let reason: Reason

    package init(path: String, line: Int? = nil, reason: Reason) {
        self.path = path
        self.line = line
        self.reason = reason
    }

    /// `true` if the file may be usable later without a change by the operator.
    package var mayPass: Bool {
        if case .system(let error) = reason { error.mayPass } else { false }
    }

    package var description: String {
        guard let line else { return "key file \(path) \(detail)" }
        return "key file \(path), line \(line): \(detail)"
    }

    /// The description for a process that has the keys in memory: new keys would not open what these have sealed.
    package var descriptionWhileInUse: String {
        guard reason == .missing else { return description }
        return "key file \(path) does not exist any more: put it back, or restore it from a backup"
    }

    private var detail: String {
        switch reason {
        case .missing:
            "does not exist: restore it from its copy, because a new key ring cannot open stored tokens; only if none "
                + "is stored yet, run: refresh-worker keys generate --key-file \(path)"
        case .folderMissing:
            "cannot be created, because its folder does not exist: create the folder first"
        case .alreadyExists:
            "exists already and was not changed: remove it only if no stored token is sealed with its keys"
        case .notAllowed:
            "is not readable by this user: run the command as the file's owner"
        case .notRegular:
            "is not a regular file: give the path of a file that `refresh-worker keys generate` made"
        case .openToOthers(let mode):
            "is readable by others (mode \(Self.octal(mode))): run: chmod 600 \(path)"
        case .foreignOwner(let owner, let user):
            // A file that root takes over locks out the service.
            "belongs to user id \(owner), but user id \(user) is running: run the command as the owner: "
                + "runuser -u \"$(id -nu \(owner))\" -- refresh-worker …"
        case .tooLarge(let limit):
            "is larger than \(limit) bytes: it is not a key file, or has retired keys to remove"
        case .malformedLine(let expectation):
            "\(expectation): fix the line, or restore the file from a backup"
        case .duplicateKey(let id):
            "key \(id) is in the file twice: remove one of the two lines"
        case .noSealingKey:
            "has no key that seals: restore it from a backup, or remove the word \"pending\" from a key's line"
        case .unknownKey(let id):
            "has no key \(id): run: refresh-worker keys list"
        case .sealingKey(let id):
            "still seals with key \(id): promote another key first"
        case .system(let error):
            "cannot be used: \(error)"
        case .sealing(let error):
            "cannot get a new key: \(error)"
        }
    }

    private static func octal(_ mode: UInt32) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
