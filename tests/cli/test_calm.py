"""`calm`: nothing is in force any more."""


def test_calm(asked):
    """One line, once it is so."""
    proxy, run = asked
    proxy.use("lost-ack", 5)
    done = run("calm")
    assert (done.exit_code, done.stdout) == (0, "profile calm, seed 5, generation 3\n")
    assert proxy.service.profile.rules == ()
