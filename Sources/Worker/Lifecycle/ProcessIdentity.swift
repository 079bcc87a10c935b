private import Glibc

/// The identity of this process.
enum ProcessIdentity {
    static var number: Int32 { getpid() }
}
