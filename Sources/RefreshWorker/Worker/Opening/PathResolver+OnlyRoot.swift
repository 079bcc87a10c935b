import Base
import Glibc

extension PathResolver {
    /// `true` if root alone decides what a path leads to: every folder and link on the way, and the file, are root's.
    ///
    /// A way that ends before the file counts as far as it goes.
    static func onlyRootCanChange(_ path: String) -> Bool {
        var rest = (path.hasPrefix("/") ? path : "\(absolute("."))/\(path)").split(separator: "/").map(String.init)
        var way = ""
        var linksLeft = maximumLinks
        while !rest.isEmpty {
            let part = rest.removeFirst()
            guard part != "." else { continue }
            guard part != ".." else {
                way = way.parentFolder == "/" ? "" : way.parentFolder
                continue
            }
            let next = "\(way)/\(part)"
            var facts = stat()
            guard unsafe lstat(next, &facts) == 0 else { return errno == ENOENT || errno == ENOTDIR }
            guard facts.onlyRootCanChange else { return false }
            guard facts.st_mode & S_IFMT == S_IFLNK else {
                way = next
                continue
            }
            let target = linkTarget(next)
            linksLeft -= 1
            guard !target.isEmpty, linksLeft > 0 else { return false }
            if target.hasPrefix("/") { way = "" }
            rest = target.split(separator: "/").map(String.init) + rest
        }
        return true
    }
}

extension stat {
    /// `true` if only root can change the file, or add and remove names in the folder.
    ///
    /// In a folder with the sticky bit, such as /tmp, nobody can replace what is root's.
    fileprivate var onlyRootCanChange: Bool {
        guard st_uid == 0 else { return false }
        let kind = st_mode & S_IFMT
        guard kind == S_IFREG || kind == S_IFDIR, st_mode & S_ISVTX == 0 else { return true }
        return st_mode & S_IWOTH == 0 && (st_gid == 0 || st_mode & S_IWGRP == 0)
    }
}
