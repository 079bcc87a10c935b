import Base
import Storage

/// The folder and the names of spill files.
///
/// For a SQLite file it is the folder of the database: the results stay with it and do not need other space. For a
/// server it is the service's state folder, or that of the key ring, which the worker's user can write for `keys
/// rotate`. Workers of several schemas can share that folder.
struct SpillLocation: Equatable, Sendable {
    private static let stateDirectoryName = "STATE_DIRECTORY"

    let folder: String
    /// The prefix of all file names.
    let stem: String
    /// `true` if the store commits into the same folder, so that space freed there helps it.
    let isBesideDatabase: Bool

    init(of database: DatabaseLocation, keyFile: String, environment: [String: String]) {
        switch database {
        case .file(let path):
            // SQLite also follows symbolic links before it names the files next to the database.
            let path = PathResolver.absolute(path)
            folder = path.parentFolder
            stem = path.fileName
            isBesideDatabase = true
        case .server(let address):
            // systemd separates several folders by colons.
            let state = environment[Self.stateDirectoryName]?.split(separator: ":").first.map(String.init)
            folder = state ?? PathResolver.absolute(keyFile).parentFolder
            stem = "refresh-worker" + (address.schema.isStandard ? "" : "-\(address.schema.text)")
            isBesideDatabase = false
        }
    }

    /// The paths of the spill files, complete or not.
    var spills: [String] {
        get throws(SystemCallError) { try Folder.names(in: folder).filter(isSpill).map { "\(folder)/\($0)" } }
    }

    /// The path of the disk space reserved for results and, next to a database, for commits.
    var reserve: String { "\(folder)/\(stem).reserve" }

    /// The path of a spill file during its first write.
    func writing(by worker: String) -> String { "\(folder)/\(stem).writing-\(worker)" }

    /// The path of a spill file.
    func unsaved(by worker: String) -> String { "\(folder)/\(stem).unsaved-\(worker)" }

    /// The path of a new reserve before it has its size.
    func newReserve(by worker: String) -> String { "\(folder)/\(stem).reserve-\(worker)" }

    /// `true` if a file of the folder is a spill file, complete or not.
    func isSpill(_ name: String) -> Bool {
        name.hasPrefix("\(stem).unsaved-") || name.hasPrefix("\(stem).writing-")
    }

    /// `true` for the name of a spill file that could not be recovered.
    func isSetAside(_ name: String) -> Bool { name.hasPrefix("\(stem).set-aside-") }

    /// Returns the path of a spill file once it is set aside.
    static func setAside(_ path: String) -> String {
        let parts = path.fileName.split(separator: ".", omittingEmptySubsequences: false)
        guard let last = parts.last, let dash = last.firstIndex(of: "-") else { return "\(path).set-aside" }
        return "\(path.parentFolder)/" + (parts.dropLast() + ["set-aside\(last[dash...])"]).joined(separator: ".")
    }
}
