import Glibc
import HTTPServer

extension CommandError {
    /// Adds the advice that fits the system's reason.
    init(cannotListen error: HTTPServerError) {
        let advice =
            switch error.systemError {
            case EADDRINUSE: "stop the program that listens there, or use another address"
            case EADDRNOTAVAIL: "use an address of this machine: run: ip address"
            case ENOENT, ENOTDIR: "create the folder, and let the worker's user write to it"
            case EACCES, EPERM:
                """
                let the worker's user write to the folder of the socket, or use a port above 1023, since a lower one needs \
                CAP_NET_BIND_SERVICE
                """
            default: "check that no other program listens there, or use another address"
            }
        self.init(.cannotCreate, "\(error): \(advice)")
    }
}
