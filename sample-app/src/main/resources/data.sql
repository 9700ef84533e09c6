insert into plans select 'alice', '20/1m', 20 where not exists (select 1 from plans where customer = 'alice');
insert into plans select 'bob', '60/1m', 100 where not exists (select 1 from plans where customer = 'bob');
