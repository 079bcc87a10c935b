private import Glibc

/// Why a file cannot be used: what is wrong with it, and what to do.
///
/// It never quotes the file, which can hold a secret.
package struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What a caller decides by.
    package enum Kind: Hashable, Sendable {
        case missing
        case folderMissing
        /// A system call failed with this `errno`.
        case system(Int32)
        /// A library failed, which says nothing about the file.
        case library
        /// A program that opens or closes the file failed, which might pass.
        case program
        /// The file's content, owner or permissions.
        case unfit
    }

    package let description: String
    package let kind: Kind
    /// The path, if the file has one.
    package let path: String?

    package init(_ description: String, _ kind: Kind = .unfit, path: String? = nil) {
        self.description = description
        self.kind = kind
        self.path = path
    }

    /// `true` if the same file might be usable later without a change by the operator.
    package var mayPass: Bool {
        switch kind {
        case .system(let code): Self.mayPass(code)
        case .program: true
        case .missing, .folderMissing, .library, .unfit: false
        }
    }

    /// `true` if a call that failed with this `errno` might succeed later without a change by the operator.
    package static func mayPass(_ code: Int32) -> Bool { [EIO, EMFILE, ENFILE, ENOMEM, EAGAIN].contains(code) }
}
