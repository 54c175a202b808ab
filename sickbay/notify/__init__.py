"""Notify: reach people.

    messages     what people should have been told by now, from an object as it is
    channels     where messages go, one protocol; the webhook
    controller   which of them have not been told yet; send, then note it in the object

What was told stands in `status.notified` of the object it is about, so a restart repeats nothing and loses nothing.
"""
